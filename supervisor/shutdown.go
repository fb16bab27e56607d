package supervisor

import (
	"sync"

	"github.com/sovereign-run/sovereign/mailbox"
)

// Shutdown has Run stop everything and return. It returns at once.
func (sup *Supervisor) Shutdown() {
	sup.closed.Do(func() { close(sup.closing) })
}

// Hurry has Run stop everything without waiting for anybody: what still lives is
// killed at once, with its tree.
func (sup *Supervisor) Hurry() {
	sup.hurried.Store(true)
	sup.Shutdown()
	if !sup.isRunning() {
		return // Run has not come to starting anything, and will not
	}
	each(sup.actors(), func(s *slot) {
		s.post(func() {
			s.step(stop)
			if s.child != nil {
				s.child.because(byForce, "a second signal", mailbox.Ref{})
			}
			s.step(kill)
		})
	})
}

// stopAll stops every slot and waits for it: those that come after an actor before
// it, all others at the same time. Each takes its stop.timeout at most, and what
// the kernel needs to kill a tree.
func (sup *Supervisor) stopAll() {
	sup.Shutdown()
	fleet := sup.lastFleet()
	before := dependants(fleet)
	var wg sync.WaitGroup
	for _, a := range fleet {
		wg.Go(func() {
			for _, d := range before[a.name()] {
				for _, s := range d.all() {
					<-s.done
				}
			}
			each([]*actor{a}, func(s *slot) {
				s.post(func() { s.closing = true; s.step(stop) })
				<-s.done
			})
		})
	}
	wg.Wait()
}

// lastFleet is what is to be stopped: no reload comes after it.
func (sup *Supervisor) lastFleet() []*actor {
	sup.changing.Lock()
	defer sup.changing.Unlock()
	return sup.actors()
}

// dependants are, by actor, those that come after it.
func dependants(fleet []*actor) map[string][]*actor {
	out := map[string][]*actor{}
	for _, a := range fleet {
		for _, name := range a.def.spec.After {
			out[name] = append(out[name], a)
		}
	}
	return out
}
