package mailbox

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
)

// Two things can be at fault when attempts end badly: the message, which then does
// so again and again, whoever works on it; or the actor, which then fails whatever
// it is given. The record of a message counts the processes that died in a row while
// they worked on it; the actor's tally, which of its messages failed in a row.

// poisonous is how many processes must have died in a row for a message to be
// called poison.
const poisonous = 2

// poison says that a message kills those who work on it, "" where that is not known.
func poison(deaths int) string {
	if deaths < poisonous {
		return ""
	}
	return strconv.Itoa(deaths) + " processes in a row died while they worked on it: it may be poison"
}

// sickAfter is how many different messages of an actor must have failed in a row for
// it to be called sick.
const sickAfter = 10

// illness is which messages of an actor have failed since one was completed.
type illness struct {
	mu     sync.Mutex // guards all below
	failed map[ID]struct{}
	last   Category
}

// remembered bounds illness.failed.
const remembered = 1000

// fails reports whether an attempt that ended so speaks against its actor. What a
// person or the message itself is the cause of does not.
func fails(c Category) bool {
	switch c {
	case CategoryWorkerLost, CategoryExitStatus, CategoryTimeout, CategoryClaimExpired, CategoryNoProgress, CategoryResultTooLarge, CategoryFailedByWorker:
		return true
	}
	return false
}

// add takes note of the end of an attempt, and returns the event that tells of what
// has changed by it, "" for none.
func (i *illness) add(id ID, how Category) (event protocol.EventKind, text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case how == CategoryCompleted:
		was := len(i.failed)
		i.failed, i.last = nil, ""
		if was >= sickAfter {
			return protocol.EventActorWell, "a message was completed after " + strconv.Itoa(was) + " had failed"
		}
	case fails(how):
		i.last = how
		if _, known := i.failed[id]; known {
			return "", ""
		}
		if len(i.failed) == remembered {
			return "", ""
		}
		if i.failed == nil {
			i.failed = map[ID]struct{}{}
		}
		i.failed[id] = struct{}{}
		if len(i.failed) == sickAfter {
			return protocol.EventActorSick, i.say()
		}
	}
	return "", ""
}

func (i *illness) say() string {
	n := strconv.Itoa(len(i.failed))
	if len(i.failed) == remembered {
		n += " or more"
	}
	return fmt.Sprintf("%s different messages in a row have failed (last: %s): the actor may be at fault, not they", n, i.last)
}

// diagnose brings a committed end of an attempt into the actor's tally.
func (b *Box) diagnose(t *tally, e ending) {
	if e.how == CategoryCompleted && !t.failing.Load() || e.how != CategoryCompleted && !fails(e.how) {
		return
	}
	event, text := t.illness.add(e.ref.ID, e.how)
	t.failing.Store(e.how != CategoryCompleted)
	if event != "" {
		b.Note(Event{Kind: event, Actor: e.to, Category: string(e.how), Text: text})
	}
}

// Sick says of an actor that it has failed many different messages in a row since
// the box was opened, and completed none; "" where it has not.
func (b *Box) Sick(actor string) string {
	i := &b.tallies.of(actor).illness
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.failed) < sickAfter {
		return ""
	}
	return i.say()
}
