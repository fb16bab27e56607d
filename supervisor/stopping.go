package supervisor

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// terminate asks the process to end. It may take stop.timeout.
func (s *slot) terminate() {
	c, limit := s.child, s.spec().Stop.Timeout
	c.because(byStop, limit.String(), mailbox.Ref{})
	if s.watched == nil { // it was not wanted any more before it was watched
		s.watched = c.proc.Exited()
	}
	if s.sup.hurried.Load() {
		c.because(byForce, "a second signal", mailbox.Ref{})
		s.step(kill)
		return
	}
	c.notify(protocol.NotifyDrain, nil)
	if err := c.proc.Stop(s.def.Load().stopSignal); err != nil {
		s.log.Warn("stop signal not sent", "err", err)
	}
	s.clock.set(s.sup.now(), limit)
}

// rang is called when the clock of the state has run out.
func (s *slot) rang() {
	switch s.life.at {
	case stopping:
		s.log.Info("process did not end in time", "pid", s.child.proc.PID(), "elapsed", s.spec().Stop.Timeout)
		s.child.because(byForce, s.spec().Stop.Timeout.String(), mailbox.Ref{})
		s.step(stopTimeout)
	case starting:
		s.killFor(byUnready, protocol.EventNotReady, s.child.def.spec.Ready.Timeout, mailbox.Ref{})
	case backoff:
		s.step(elapsed)
	}
}

// exceeded is called when the child's limit has run out: the time that a task
// may take, or the time since a worker's last sign of life.
func (s *slot) exceeded() {
	if s.child.task != nil {
		s.killFor(byTimeout, protocol.EventTimeout, s.child.def.spec.Timeout, s.child.ref())
		return
	}
	watchdog := s.spec().Watchdog
	if watchdog <= 0 {
		return // it was switched off
	}
	now := s.sup.now()
	silent := time.Duration(now - fence.Instant(s.child.aliveAt.Load()))
	if s.child.pending.Load() > 0 || s.life.at == starting && s.child.asksToNotify() {
		silent = 0 // one that starts has ready.timeout, and says nothing before it is ready
	}
	if silent < watchdog {
		s.limit.set(now, watchdog-silent)
		return
	}
	s.killFor(byWatchdog, protocol.EventWatchdog, watchdog, mailbox.Ref{})
}

// killFor ends the child at once for a reason of ours.
func (s *slot) killFor(why cause, kind protocol.EventKind, limit time.Duration, about mailbox.Ref) {
	if s.child.because(why, limit.String(), about) {
		s.sup.note(s.child, kind, why.String()+" after "+limit.String())
	}
	s.step(kill)
}

// condemn ends c for the message about. Where c is only being made, watch sees
// to it; where it has ended, there is nothing to do.
func (s *slot) condemn(c *child, why cause, limit string, about mailbox.Ref) {
	s.post(func() { s.killNow(c, why, limit, about) })
}

// killNow is condemn, on the slot's own goroutine.
func (s *slot) killNow(c *child, why cause, limit string, about mailbox.Ref) {
	if c.because(why, limit, about) && s.child == c {
		s.step(kill)
	}
}

// gone is called when nothing of c is left and its end is on record, or will be with the
// start that follows at once (startSuccessor). held are the messages that ended with it.
func (s *slot) gone(c *child, held []mailbox.Ref) {
	s.child = nil
	s.proceed(s.assess(c, held))
}

// hasSuccessor reports whether gone would start another process now. Nothing is changed.
func (s *slot) hasSuccessor(c *child, held []mailbox.Ref) bool {
	before := s.history
	defer func() { s.history = before }()
	a, _ := s.assess(c, held)
	if s.held || s.leaving || s.spec().Mode == config.Task {
		return false
	}
	switch s.follows(a) {
	case again:
	case later:
		if s.history.streak.wait(s.spec().Backoff, a.started, 0) > 0 {
			return false
		}
	default:
		return false
	}
	closed, _ := s.sup.gate.closed(s.spec().After)
	return closed == ""
}

// assess is what is to be known of the end of c for what comes next, and, for people, why
// it was no success. It is entered in the slot's history.
func (s *slot) assess(c *child, held []mailbox.Ref) (after, error) {
	e := c.death()
	now := s.sup.now()
	s.history.success = e.cause == byItself && e.code == 0
	s.history.streak.ran(s.spec().Backoff, time.Duration(now-c.startedAt))
	a := after{started: true, success: s.history.success, asked: e.cause == byStop || e.cause == byForce || e.cause == byCancel}
	if a.renewed = s.outdated(c.def); a.renewed {
		s.forgive()
	} else if c.task == nil && !a.asked {
		a.spent = s.history.budget.count(s.spec().Intensity, now, held)
	}
	var trouble error
	if !a.success && !a.asked {
		how := e.lost().Reason
		if c.task != nil {
			how = e.task(nil, false).Reason
		}
		trouble = refusal.New(refusal.Failed, "the last process ended: "+how, "", "see `sovereign logs "+s.name.Actor+"`")
	}
	return a, trouble
}

// unspawned is called when no process came of a start.
func (s *slot) unspawned(d *definition, err error) {
	s.child = nil
	a, err := s.refused(err)
	a.short = shortOfFiles(err)
	if a.renewed = s.outdated(d); !a.hopeless && !a.renewed && !a.short {
		a.spent = s.history.budget.count(s.spec().Intensity, s.sup.now(), nil)
	}
	s.proceed(a, err)
}

// spent says that a slot is not started again because it has ended too often, the last
// time with trouble, nil = with success.
func (s *slot) spent(trouble error) error {
	last := refusal.New(refusal.Failed, "the last process ended: exit status 0", "", "see `sovereign logs "+s.name.Actor+"`")
	if trouble != nil {
		last = refusal.Of(trouble)
	}
	i := s.spec().Intensity
	return refusal.New(last.Category, fmt.Sprintf("its intensity of %d within %s is used up; %s", i.Restarts, config.FormatDuration(i.Within), last.Message), last.Why, last.Next).Because(trouble)
}

// follows is what comes next.
func (s *slot) follows(a after) event {
	a.wanted = s.life.want && !s.sup.failed()
	return next(s.spec().Mode, s.spec().Restart, a)
}

// proceed decides what comes next, and says so.
func (s *slot) proceed(a after, trouble error) {
	spec, e := s.spec(), s.follows(a)
	s.history.trouble = trouble
	switch e {
	case later:
		s.history.wait = s.history.streak.wait(spec.Backoff, a.started, rand.Float64())
		if a.short {
			s.history.wait = max(s.history.wait, shortWait)
		}
		if s.history.wait > 0 {
			s.sup.noteSlot(s, protocol.EventRestarting, "in "+s.history.wait.Round(time.Millisecond).String())
		}
	case giveUp:
		if a.spent {
			s.history.trouble = s.spent(trouble)
		}
		s.log.Error("slot failed", "err", s.history.trouble)
	case rest:
		s.history.trouble = nil
	}
	why := s.why()
	s.step(e)
	if e == giveUp {
		s.sup.noteSlot(s, protocol.EventGaveUp, why) // who waits for it finds the slot so
	}
}
