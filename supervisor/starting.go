package supervisor

import (
	"context"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// await goes on once everything that the actor comes after is ready.
func (s *slot) await() {
	name, opens := s.sup.gate.closed(s.spec().After)
	s.opens = opens
	if name == "" {
		s.history.trouble = nil
		s.step(free)
		return
	}
	s.history.trouble = refusal.New(refusal.Unavailable, "waits for "+name, name+" is not ready",
		"see `sovereign status "+name+"`").Later()
	s.publish()
}

// seek looks for work. A long-lived process always has some.
func (s *slot) seek() {
	s.history.trouble = nil
	if s.held || s.owing {
		return // until seekAgain
	}
	if s.spec().Mode != config.Task {
		s.step(work)
		return
	}
	ctx, cancel := context.WithCancel(s.sup.base)
	s.cancel = cancel
	s.sup.job(func(context.Context) {
		defer cancel()
		s.fetch(ctx)
	})
}

// seekAgain looks for work where the slot is idle and nothing does: what kept seek from it
// is over.
func (s *slot) seekAgain() {
	if s.life.at == idle && s.cancel == nil {
		s.seek()
	}
}

// fetch waits for a message, and claims it.
func (s *slot) fetch(ctx context.Context) {
	p := fence.NewProcess()
	lease, d, err := s.sup.box.StartTask(ctx, s.name, p, s.spec().LeaseTTL)
	s.post(func() {
		s.cancel = nil
		switch {
		case err == nil && s.early():
			s.giveBackEarly(taskOf(s, lease, &d))
		case err == nil:
			s.child = taskOf(s, lease, &d)
			if s.sup.living.add(s.child) {
				s.child.because(byCancel, "", s.child.ref())
			}
			s.step(work)
		case ctx.Err() != nil:
			s.proceed(after{asked: true}, nil)
		default:
			s.proceed(s.refused(err))
		}
	})
}

func taskOf(s *slot, lease fence.Lease, d *mailbox.Delivery) *child {
	c := newChild(s, s.def.Load(), lease.Holder())
	c.task = d
	return c
}

// early reports whether the slot may not start a task now, which it could when it began
// to look for work: something that the actor comes after has stopped since, or a
// reload has made it something else.
func (s *slot) early() bool {
	if s.leaving || s.spec().Mode != config.Task {
		return true
	}
	name, _ := s.sup.gate.closed(s.spec().After)
	return name != ""
}

// giveBackEarly returns a message whose process may not be started yet, and waits.
func (s *slot) giveBackEarly(c *child) {
	s.cancel = func() {} // there is nothing to call off: the slot comes back by itself
	s.sup.job(func(ctx context.Context) {
		s.unstart(ctx, c, s.event(protocol.EventWithdrawn, "its actor cannot take it now"))
		s.post(func() { s.cancel = nil; s.proceed(after{asked: true}, nil) })
	})
}

// refused says what an error of the store means for the next start.
func (s *slot) refused(err error) (after, error) {
	if refusal.Has(err, refusal.OutcomeUnknown) {
		s.sup.fail(err)
	}
	return after{hopeless: refusal.Has(err, refusal.LeaseCorrupt)}, err
}

// watch waits until the process is ready, and looks after it.
func (s *slot) watch() {
	s.watched = s.child.proc.Exited()
	spec := s.child.def.spec
	switch {
	case s.child.cause != 0: // decided while it was being made
		s.step(kill)
		return
	case spec.Mode == config.Task && spec.Timeout > 0:
		s.limit.set(s.child.startedAt, spec.Timeout)
	case spec.Mode != config.Task && s.spec().Watchdog > 0:
		s.limit.set(s.sup.now(), s.spec().Watchdog)
	}
	if spec.Ready == nil || spec.Mode == config.Task || s.child.early {
		s.step(ready)
		return
	}
	s.clock.set(s.sup.now(), spec.Ready.Timeout)
	s.probe()
}

// probe has it seen when the process is ready, unless it says so itself.
func (s *slot) probe() {
	c := s.child
	if c.def.spec.Ready.Notify || s.held || s.probing {
		return
	}
	ctx, cancel := context.WithCancel(s.sup.base)
	s.cancel, s.probing = cancel, true
	s.sup.job(func(context.Context) {
		defer cancel()
		if s.sup.probe(ctx, c.def, c.holder) == nil {
			s.isReady(c)
		}
		s.post(func() {
			s.probing = false
			s.sup.changes.tell()
			if s.life.at == starting && s.child.asksToBeSeen() && !s.child.early {
				s.probe() // it was held meanwhile, or this was the probe of the process before
			}
		})
	})
}

// isReady says that c was seen, or says itself, to be ready.
func (s *slot) isReady(c *child) {
	s.post(func() {
		if c.early || c.decided || s.child == c && s.life.at != starting {
			return
		}
		c.early = true
		c.aliveAt.Store(int64(s.sup.now())) // until now ready.timeout was its limit
		s.sup.note(c, protocol.EventReady, "")
		if s.child == c {
			s.step(ready)
		}
	})
}
