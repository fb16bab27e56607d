package supervisor

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

// What a supervisor needs of descriptors: for itself, the store, the sockets and those
// who ask it for something; and for each slot, while its process lives, besides what is
// open for a moment.
const (
	filesOwn  = 64
	filesSlot = 2 // the pipes of its output
	filesMore = 1 // a worker's channel; a socket for sd_notify
)

// filesFor is how many descriptors the slots of actors take, and the supervisor itself.
func filesFor(actors []config.Actor) (slots int, need uint64) {
	need = filesOwn
	for i := range actors {
		each := filesSlot
		if actors[i].Mode == config.Worker {
			each += filesMore
		}
		if r := actors[i].Ready; r != nil && r.Notify && actors[i].Mode != config.Task {
			each += filesMore
		}
		slots += actors[i].Replicas
		need += uint64(each * actors[i].Replicas)
	}
	return slots, need
}

// makeRoom raises the limit of open files where it is too low for actors (H2). It is
// refused, failed, where the system does not allow that: better at the start than one
// failed start of a process after the other. What the limit leaves beyond that is shared
// out among what is open for a time: files of logs, and processes being started.
func (sup *Supervisor) makeRoom(actors []config.Actor) error {
	slots, need := filesFor(actors)
	limit, err := sup.host.RaiseFiles(need)
	if limit < need {
		cause := fmt.Sprintf("%d slots need %d, the limit is %d", slots, need, limit)
		if err != nil {
			cause += fmt.Sprintf(", and it cannot be raised (%v)", err)
		}
		return refusal.New(refusal.Failed, "the limit of open files is too low", cause,
			fmt.Sprintf("raise it to %d (ulimit -n, LimitNOFILE= in a unit), or lower replicas", need)).Because(err)
	}
	spare := int(min(limit-need, 1<<20)) + filesOwn/3
	sup.files.Limit(spare / 4) // two each
	sup.pace.limit(spare / 2 / filesSpawn)
	return nil
}

// shortWait is the least wait before a start that was not made for want of descriptors
// is tried again: nothing but that ends it, so it must not be tried without pause.
const shortWait = 100 * time.Millisecond

// shortOfFiles reports whether err is a want of descriptors, of this program or of the
// whole system. It says nothing about the actor, and does not count against it.
func shortOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
