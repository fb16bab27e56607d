package supervisor

import (
	"context"
	"slices"

	"github.com/sovereign-run/sovereign/config"
)

// PlanReload says what a Reload with these actors would do now. It changes nothing.
func (sup *Supervisor) PlanReload(actors []config.Actor) []Change {
	return Plan(sup.Declared(), actors, sup.standing())
}

// Reload has the supervisor run the actors of another checked file, and returns what
// it does to them: once all slots have been told, not once they have done it.
// record makes the new actors durable in the mailbox, before anything is told. Where it
// fails, nothing is changed; refused, unavailable, before the slots run and once they
// stop. Of reloads that are asked for at one time one is made after the other.
//
// A slot whose process would be another one now gets a new one, by a stop and a
// start; a task ends as it began, and the next one is started otherwise. What can
// change while a process runs does. Slots that are not declared any more take no
// new work, finish what they have, and end. What an operator has stopped stays so.
// A slot that has failed is started anew where anything of its actor has changed.
func (sup *Supervisor) Reload(ctx context.Context, actors []config.Actor, record func(context.Context) error) ([]Change, error) {
	sup.changing.Lock()
	defer sup.changing.Unlock()
	if err := sup.operable(); err != nil {
		return nil, err
	}
	room, err := sup.makeRoom(actors)
	if err != nil {
		return nil, err
	}
	changes := sup.PlanReload(actors)
	// Whoever asked may go; what has begun is finished.
	if err := record(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	sup.share(room)
	sup.apply(actors)
	sup.changes.tell()
	return changes, nil
}

// Declared are the actors of the file that was read last, in its order.
func (sup *Supervisor) Declared() []config.Actor {
	fleet := sup.actors()
	out := make([]config.Actor, 0, len(fleet))
	for _, a := range fleet {
		if !a.removed {
			out = append(out, *a.def.spec)
		}
	}
	return out
}

// standing is what a plan has to know of the actors.
func (sup *Supervisor) standing() map[string]Standing {
	out := map[string]Standing{}
	for _, a := range sup.box.Actors() {
		if a.Stopped {
			out[a.Name] = Standing{Stopped: true}
		}
	}
	for _, a := range sup.actors() {
		st := out[a.name()]
		st.Leaving = a.removed
		st.Failed = slices.ContainsFunc(a.slots, func(s *slot) bool { return s.seen.Load().at == failed })
		out[a.name()] = st
	}
	return out
}

// apply puts actors into the place of those that run. It cannot fail. Call it with
// changing held.
func (sup *Supervisor) apply(actors []config.Actor) {
	old := map[string]*actor{}
	for _, a := range sup.actors() {
		old[a.name()] = a
	}
	wanted := sup.wanted(actors)
	// Before any slot looks at what it comes after: an actor that is new, or gets
	// more slots, is not ready.
	for i := range actors {
		slots := actors[i].Replicas
		if was := old[actors[i].Name]; was != nil {
			slots = max(slots, len(was.slots))
		}
		sup.gate.set(actors[i].Name, slots)
	}
	var fleet []*actor
	var fresh []*slot
	for i := range actors {
		spec := &actors[i]
		a, made := sup.renew(old[spec.Name], spec, wanted[spec.Name])
		fleet = append(fleet, a)
		if wanted[spec.Name] {
			fresh = append(fresh, made...)
		}
		sup.gate.set(spec.Name, spec.Replicas)
		delete(old, spec.Name)
	}
	for _, was := range sup.actors() {
		if old[was.name()] == nil {
			continue
		}
		gone := &actor{def: was.def, removed: true}
		for _, s := range was.all() {
			if s.call(s.retire) {
				gone.leaving = append(gone.leaving, s)
			}
		}
		sup.gate.forget(was.name())
		if len(gone.leaving) > 0 {
			fleet = append(fleet, gone)
		}
	}
	sup.fleet.Store(&fleet)
	for _, s := range fresh {
		s.post(func() { s.step(start) })
	}
}

// renew makes the actor of spec from what there was of it, nil for nothing, and
// returns the slots that it had to make.
func (sup *Supervisor) renew(was *actor, spec *config.Actor, wanted bool) (a *actor, made []*slot) {
	known := map[int]*slot{}
	var d *definition
	if was == nil {
		d = define(spec, 0, sup.environ)
	} else {
		d = redefine(was.def, spec, sup.environ)
		for _, s := range was.all() {
			known[s.name.Number] = s
		}
	}
	a = &actor{def: d}
	for n := 1; n <= spec.Replicas; n++ {
		s := known[n]
		if s == nil || !s.call(func() { s.adopt(d, wanted) }) {
			s = newSlot(sup, d, n)
			sup.own(s)
			if why, ok := sup.haunted[s.name]; ok {
				delete(sup.haunted, s.name)
				sup.keepStuck(s, why)
			}
			made = append(made, s)
		}
		a.slots = append(a.slots, s)
		delete(known, n)
	}
	for _, s := range known {
		if s.call(s.retire) {
			a.leaving = append(a.leaving, s)
		}
	}
	slices.SortFunc(a.leaving, func(s, t *slot) int { return s.name.Number - t.name.Number })
	return a, made
}

// redefine is the definition of spec as the successor of was: was itself where nothing
// has changed.
func redefine(was *definition, spec *config.Actor, base []string) *definition {
	d := config.Compare(was.spec, spec)
	switch {
	case !d.Any():
		return was
	case d.Process:
		return define(spec, was.process+1, base)
	}
	return define(spec, was.process, base)
}

// own gives the slot its goroutine, which Run joins.
func (sup *Supervisor) own(s *slot) {
	sup.slots.Go(func() {
		s.run()
		sup.dismiss(s)
	})
}

// dismiss takes a slot that has left out of the fleet.
func (sup *Supervisor) dismiss(s *slot) {
	if !s.leaving {
		return // the supervisor stops
	}
	sup.changing.Lock()
	defer sup.changing.Unlock()
	var fleet []*actor
	for _, a := range sup.actors() {
		if slices.Contains(a.leaving, s) {
			a = &actor{def: a.def, slots: a.slots, removed: a.removed,
				leaving: slices.DeleteFunc(slices.Clone(a.leaving), func(t *slot) bool { return t == s })}
			if a.removed && len(a.leaving) == 0 {
				continue
			}
		}
		fleet = append(fleet, a)
	}
	sup.fleet.Store(&fleet)
	sup.changes.tell()
}
