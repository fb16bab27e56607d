package supervisor

import (
	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
)

// A budget counts how often a slot has ended within the window of its
// intensity, however long it ran in between. The zero value has counted nothing.
type budget struct {
	ends []counted // oldest first, all within the window of the last one
}

type counted struct {
	at fence.Instant
	of []mailbox.Ref // what the process held, so that deaths on one message count once
}

// count adds an end at now of a process that held the messages of, and reports
// whether there are more than the intensity allows. An end of a process that held
// only messages on which one has died before, within the window, is not
// counted again.
func (b *budget) count(i config.Intensity, now fence.Instant, of []mailbox.Ref) (spent bool) {
	b.forget(now - fence.Instant(i.Within))
	if len(of) == 0 || !b.died(of) {
		b.ends = append(b.ends, counted{now, of})
	}
	return len(b.ends) > i.Restarts
}

// reset forgets everything: a person has started the slot.
func (b *budget) reset() { b.ends = nil }

// forget drops what is not younger than edge.
func (b *budget) forget(edge fence.Instant) {
	n := 0
	for n < len(b.ends) && b.ends[n].at <= edge {
		n++
	}
	b.ends = append(b.ends[:0:0], b.ends[n:]...)
}

// died reports whether each of refs was held by a process that has been counted.
func (b *budget) died(refs []mailbox.Ref) bool {
	for _, ref := range refs {
		if !b.held(ref.ID) {
			return false
		}
	}
	return true
}

func (b *budget) held(id mailbox.ID) bool {
	for _, e := range b.ends {
		for _, ref := range e.of {
			if ref.ID == id {
				return true
			}
		}
	}
	return false
}
