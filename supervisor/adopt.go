package supervisor

import (
	"context"
	"math"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
)

// An adoption is what a reload means for one slot that goes on.
type adoption struct {
	changed bool // something in its definition
	renewed bool // … that makes its processes other ones
	remade  bool // … the mode among it
	task    bool // the process that lives is a task's: it ends by itself, with its message
	drained bool // the process that lives was told to take no new work, when the slot was to go: it finishes, and then gives way
	runs    bool // a process that ended as the last one did would be started again, by the policy of now
}

// adopt says which events bring a slot from what it was to what it is to be. What is
// under way without a process that could be told ends first: it finds out by
// itself (slot.catchUp, slot.fetch, next).
func (l life) adopt(a adoption) []event {
	if !l.want {
		return nil
	}
	switch l.at {
	case idle:
		if a.remade {
			return []event{stop, start} // work of one mode is none of another
		}
	case starting, up:
		if a.renewed && !a.drained && !a.task {
			return []event{restart}
		}
	case backoff:
		if a.renewed {
			return []event{start}
		}
	case failed:
		if a.changed {
			return []event{start}
		}
	case exited:
		if a.renewed || a.runs {
			return []event{start}
		}
	}
	return nil
}

// adopt has the slot live by d. wanted says whether a slot that was to go is to run
// again.
func (s *slot) adopt(d *definition, wanted bool) {
	old := s.def.Load()
	s.def.Store(d)
	if s.leaving {
		s.leaving = false
		if wanted {
			s.step(start)
		}
	}
	a := adoption{changed: d != old, renewed: d.process != old.process, remade: d.spec.Mode != old.spec.Mode,
		task: s.child != nil && s.child.task != nil, drained: s.child.drained(),
		runs: next(d.spec.Mode, d.spec.Restart, after{wanted: true, started: true, success: s.history.success}) != finish}
	if a.renewed {
		s.forgive()
	}
	for _, e := range s.life.adopt(a) {
		s.begin(e)
	}
	if s.life.at == waiting {
		s.await() // for others than before, perhaps
	}
	s.adoptPolicy()
	s.publish()
}

// adoptPolicy has what runs go by what can change while it does.
func (s *slot) adoptPolicy() {
	spec := s.spec()
	if logs := s.logs.Load(); logs != nil {
		logs.Limit(spec.Log.MaxSize, spec.Log.Keep)
	}
	if c := s.child; c != nil && !c.decided && c.task == nil && s.watched != nil {
		s.limit.off()
		if spec.Watchdog > 0 {
			s.limit.set(s.sup.now(), spec.Watchdog)
		}
	}
}

// forgive forgets how often the slot has ended: what has ended is not what is
// started next.
func (s *slot) forgive() {
	s.history.budget.reset()
	s.history.streak = 0
}

// retire has the slot go: it takes no new work, finishes what it has, and ends.
func (s *slot) retire() {
	s.leaving = true
	s.step(retire)
	s.publish()
}

// catchUp does what a reload asks for that came while c was being made.
func (s *slot) catchUp(c *child) {
	switch {
	case !s.life.want:
		s.step(retire)
	case s.outdated(c.def) && c.task == nil:
		s.step(restart)
	}
}

// outdated reports whether a process of d is not what the slot is to run.
func (s *slot) outdated(d *definition) bool { return d.process != s.def.Load().process }

// finishUp has the process take no new work, and ends it once it has none: by a stop, or
// by a restart where a reload has brought the slot back meanwhile, since there is no way
// to tell a worker that it may take work again. A task ends by itself, with its message,
// or by its timeout. What a worker holds ends by the actor's timeout, too.
func (s *slot) finishUp() {
	c := s.child
	switch {
	case c.task != nil:
		return
	case c.def.spec.Mode != config.Worker:
		s.step(stop)
		return
	}
	c.endClaims()
	c.notify(protocol.NotifyDrain, nil)
	s.sup.job(func(ctx context.Context) {
		if s.sup.holdsNothing(ctx, c) {
			s.post(func() {
				if s.child == c {
					s.step(s.life.finished())
				}
			})
		}
	})
}

// finished is the event for a process that was told to take no new work and has none.
func (l life) finished() event {
	if l.want {
		return restart
	}
	return stop
}

// holdsNothing returns once c holds no message, and reports whether that came before
// ctx ended. Each end of an attempt is an event of the journal, which is told after
// the claim is gone from the index.
func (sup *Supervisor) holdsNothing(ctx context.Context, c *child) bool {
	for {
		_, more, err := sup.box.Events(ctx, math.MaxUint64-1, 1) // none: what comes is waited for
		if err != nil {
			return ctx.Err() == nil
		}
		if len(sup.box.Held(c.holder.Process)) == 0 {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}
