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
	filesAsk  = 16 // of filesOwn: connections of those who ask for something
	filesSlot = 2  // the pipes of its output
	filesMore = 1  // a worker's channel; a socket for sd_notify
)

// filesOf is how many descriptors a slot of an actor takes.
func filesOf(a *config.Actor) int {
	each := filesSlot
	if a.Mode == config.Worker {
		each += filesMore
	}
	if a.Ready != nil && a.Ready.Notify && a.Mode != config.Task {
		each += filesMore
	}
	return each
}

// filesFor is how many descriptors the slots of actors take, those that leave, each with
// its declaration, and the supervisor itself.
func filesFor(actors []config.Actor, leaving []*config.Actor) (slots int, need uint64) {
	need = filesOwn
	for i := range actors {
		slots += actors[i].Replicas
		need += uint64(filesOf(&actors[i]) * actors[i].Replicas)
	}
	for _, a := range leaving {
		slots++
		need += uint64(filesOf(a))
	}
	return slots, need
}

// leavingFor are the declarations of the slots that have a process and no place among
// actors: they finish what they have beside those.
func (sup *Supervisor) leavingFor(actors []config.Actor) (out []*config.Actor) {
	replicas := map[string]int{}
	for i := range actors {
		replicas[actors[i].Name] = actors[i].Replicas
	}
	for _, a := range sup.actors() {
		for _, s := range a.all() {
			if at := s.seen.Load().at; s.name.Number > replicas[a.name()] && (at == spawning || at.lives()) {
				out = append(out, s.spec())
			}
		}
	}
	return out
}

// A room is what a limit of open files leaves beyond what slots need.
type room struct{ spare int }

// makeRoom raises the limit of open files where it is too low for actors (H2). It is
// refused, failed, where the system does not allow that: better at the start than one
// failed start of a process after the other. A raised limit is all that it changes, which
// harms nobody where the actors do not come: share does the rest.
func (sup *Supervisor) makeRoom(actors []config.Actor) (room, error) {
	slots, need := filesFor(actors, sup.leavingFor(actors))
	limit, err := sup.host.RaiseFiles(need)
	if limit < need {
		cause := fmt.Sprintf("%d slots need %d, the limit is %d", slots, need, limit)
		if err != nil {
			cause += fmt.Sprintf(", and it cannot be raised (%v)", err)
		}
		return room{}, refusal.New(refusal.Failed, "the limit of open files is too low", cause,
			fmt.Sprintf("raise it to %d (ulimit -n, LimitNOFILE= in a unit), or lower replicas", need)).Because(err)
	}
	return room{spare: int(min(limit-need, 1<<20))}, nil
}

// share shares out what is left among what is open for a time: connections, files of logs,
// and processes being started. Call it with changing held, or before anything runs.
func (sup *Supervisor) share(r room) {
	asking := r.spare / 2
	rest := r.spare - asking + filesOwn/3
	sup.files.Limit(rest / 4) // two each
	sup.pace.limit(rest / 2 / filesSpawn)
	if sup.connections != nil {
		sup.connections(asking + filesAsk)
	}
}

// shortWait is the least wait before a start that was not made for want of descriptors
// is tried again: nothing but that ends it, so it must not be tried without pause.
const shortWait = 100 * time.Millisecond

// shortOfFiles reports whether err is a want of descriptors, of this program or of the
// whole system. It says nothing about the actor, and does not count against it.
func shortOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
