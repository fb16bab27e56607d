package supervisor

import (
	"slices"
	"strings"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// An actor is one entry of actors.yaml with its slots. It holds no state of its
// own: what it does is the sum of its slots. It never changes: a reload puts
// another one into its place.
type actor struct {
	def     *definition
	slots   []*slot // one for each replica, by their numbers
	leaving []*slot // no longer declared; each ends once its work is done
	removed bool    // no longer declared; all of its slots are leaving
}

func newActor(sup *Supervisor, d *definition) *actor {
	a := &actor{def: d}
	sup.gate.set(d.spec.Name, d.spec.Replicas)
	for n := range d.spec.Replicas {
		a.slots = append(a.slots, newSlot(sup, d, n+1))
	}
	return a
}

func (a *actor) name() string { return a.def.spec.Name }

// all are its slots, those that leave too.
func (a *actor) all() []*slot {
	if len(a.leaving) == 0 {
		return a.slots
	}
	return slices.Concat(a.slots, a.leaving)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// actors are the declared actors in the order of the file, then those that leave.
func (sup *Supervisor) actors() []*actor { return *sup.fleet.Load() }

// actor returns the actor of a name, which may be leaving, or a refusal
// unknown_actor.
func (sup *Supervisor) actor(name string) (*actor, error) {
	for _, a := range sup.actors() {
		if a.name() == name {
			return a, nil
		}
	}
	why := "this supervisor's actors.yaml does not declare it"
	if base, _, slot := strings.Cut(name, "/"); slot && slices.ContainsFunc(sup.actors(), func(a *actor) bool { return a.name() == base }) {
		why = "that names a slot, and what is done to an actor is done to all of its slots"
	}
	return nil, refusal.New(refusal.UnknownActor, "there is no actor "+protocol.Quote(name, 80), why,
		"see `sovereign status`")
}

// each runs f for every slot of every actor, at the same time, and returns when all
// have.
func each(actors []*actor, f func(*slot)) {
	var wg sync.WaitGroup
	for _, a := range actors {
		for _, s := range a.all() {
			wg.Go(func() { f(s) })
		}
	}
	wg.Wait()
}
