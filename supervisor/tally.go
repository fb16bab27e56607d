package supervisor

import (
	"maps"
	"sync"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// A Tally is what has happened to one actor's processes since New.
type Tally struct {
	Started   uint64
	Restarted uint64            // of those started, in a slot that had one since a person started it; a task's next child is none
	Ended     map[string]uint64 // by cause, in words of snake case (docs/operating.md); what never happened is left out
	Logged    int64             // bytes of output that were kept in files
	LogLost   int64             // bytes of output that could not be kept
}

// tallies counts by actor. One that was removed keeps its tally: a count never
// goes back.
type tallies struct {
	mu     sync.Mutex
	actors map[string]*Tally           // mu guards; without the logs that are open
	logs   map[fence.Slot]*capture.Log // mu guards; those that are open
}

func newTallies() tallies {
	return tallies{actors: map[string]*Tally{}, logs: map[fence.Slot]*capture.Log{}}
}

func (t *tallies) ofLocked(actor string) *Tally {
	one := t.actors[actor]
	if one == nil {
		one = &Tally{Ended: map[string]uint64{}}
		t.actors[actor] = one
	}
	return one
}

func (t *tallies) started(actor string, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.ofLocked(actor)
	one.Started++
	if again {
		one.Restarted++
	}
}

func (t *tallies) ended(actor string, e death) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ofLocked(actor).Ended[e.kind()]++
}

// opened counts what l keeps and loses from now on, until closed is called.
func (t *tallies) opened(slot fence.Slot, l *capture.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs[slot] = l
}

func (t *tallies) closed(slot fence.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.logs[slot]
	if l == nil {
		return
	}
	one := t.ofLocked(slot.Actor)
	one.Logged += l.Kept()
	one.LogLost += l.Lost()
	delete(t.logs, slot)
}

// Tallies returns the tally of every actor that has had a process since New.
func (sup *Supervisor) Tallies() map[string]Tally {
	t := &sup.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]Tally{}
	for actor, one := range t.actors {
		copied := *one
		copied.Ended = maps.Clone(one.Ended)
		out[actor] = copied
	}
	for slot, l := range t.logs {
		one := out[slot.Actor]
		one.Logged += l.Kept()
		one.LogLost += l.Lost()
		out[slot.Actor] = one
	}
	return out
}

// ReopenLogs has every log go on in a file of its name, which is made anew where
// somebody has moved it, from the next output on.
func (sup *Supervisor) ReopenLogs() {
	sup.tallies.mu.Lock()
	defer sup.tallies.mu.Unlock()
	for _, l := range sup.tallies.logs {
		l.Reopen()
	}
}
