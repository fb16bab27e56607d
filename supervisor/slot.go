package supervisor

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// A slot is one place of an actor. One goroutine, run, owns it; everything else
// sends it a function to call, or reads what it has published.
type slot struct {
	sup   *Supervisor
	actor *actor
	name  fence.Slot
	log   *slog.Logger

	mail chan func()          // for run to call
	done chan struct{}        // closed when run has returned
	seen atomic.Pointer[view] // for everybody

	// owned by run

	life    life
	child   *child          // nil = no process
	watched <-chan struct{} // its exit; nil while its end is under way, or there is none
	clock   alarm           // of the state: backoff, stop.timeout, ready.timeout
	limit   alarm           // of the child: timeout, watchdog
	opens   <-chan struct{} // the dependency that is waited for
	cancel  func()          // ends what the state waits for: a message, readiness; nil = nothing
	closing bool            // the supervisor stops: run returns once the slot rests
	waiters []chan<- view   // who waits for the slot to settle; each has room for one
	counted bool            // whether it counts as ready at the gate
	history history         // of its ends
	logs    *capture.Log    // opened at the first process
}

// history is what a slot remembers of its processes.
type history struct {
	starts   int           // processes started, ever
	failures int           // ends in a row without a stable run in between
	budget   budget        // ends within the window of intensity
	wait     time.Duration // the backoff that begins
	success  bool          // the last process ended with status 0
	trouble  error         // why the slot waits, failed or is stuck; nil = no reason
}

func newSlot(sup *Supervisor, a *actor, number int) *slot {
	s := &slot{
		sup: sup, actor: a, name: fence.Slot{Actor: a.spec.Name, Number: number},
		log:  sup.log.With("actor", a.spec.Name, "slot", number),
		mail: make(chan func()), done: make(chan struct{}),
		life: life{at: stopped},
	}
	s.publish()
	return s
}

// run owns the slot until the supervisor closes and nothing of it is left.
func (s *slot) run() {
	defer close(s.done)
	for !s.over() {
		select {
		case f := <-s.mail:
			f()
		case <-s.watched:
			s.child.because(byItself, "", mailbox.Ref{})
			s.step(exit)
		case <-s.clock.C():
			if s.clock.rang(s.sup.now()) {
				s.rang()
			}
		case <-s.limit.C():
			if s.limit.rang(s.sup.now()) {
				s.exceeded()
			}
		case <-s.opens:
			s.await()
		}
	}
	s.limit.off()
	if s.logs != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainBound)
		defer cancel()
		if err := s.logs.Close(ctx); err != nil {
			s.log.Warn("log not closed", "err", err)
		}
	}
}

// over reports whether a closing slot has come to its end.
func (s *slot) over() bool {
	return s.closing && (s.life.at == stopped || s.life.at == stuck)
}

// post has run call f, and reports whether it will: not once it has returned.
func (s *slot) post(f func()) bool {
	select {
	case s.mail <- f:
		return true
	case <-s.done:
		return false
	}
}

// step takes the slot through one cell of the table.
func (s *slot) step(e event) {
	before := s.life
	next, do := before.on(e)
	s.life = next
	if next.at != before.at {
		s.leave()
		s.log.Debug("slot changed", "state", next.at.String(), "event", e.String())
		if next.at == stopped {
			s.history.trouble = nil
			s.sup.records.drop(s.name)
			s.sup.noteSlot(s, eventStopped, "")
		}
	}
	if next.at != before.at || next.want != before.want {
		s.publish()
	}
	s.do(do, e, before.at)
	s.answer()
}

// leave ends what the state that was left waited for.
func (s *slot) leave() {
	s.clock.off()
	s.opens = nil
	if s.cancel != nil && s.life.at != withdrawing {
		s.cancel()
		s.cancel = nil
	}
}

func (s *slot) do(a action, e event, in state) {
	switch a {
	case nothing:
	case await:
		s.await()
	case seek:
		s.seek()
	case recall, giveBack, spawn, end:
		s.work(a)
	case watch:
		s.watch()
	case terminate:
		s.terminate()
	case killAgain:
		c := s.child
		s.sup.job(func(ctx context.Context) { s.killAgain(ctx, c) })
	case hold:
		s.clock.set(s.sup.now(), s.history.wait)
	case never:
		s.log.Error("slot met an event that cannot happen", "state", in.String(), "event", e.String())
	}
}

// work does the actions that take their time: each is a job whose end comes back
// as an event.
func (s *slot) work(a action) {
	c := s.child
	switch a {
	case recall:
		s.cancel()
		s.cancel = nil
	case giveBack:
		s.sup.job(func(ctx context.Context) {
			s.sup.living.drop(c)
			s.unstart(ctx, c, s.event(eventWithdrawn, "stopped before its process was started"))
			s.post(func() { s.child = nil; s.proceed(after{asked: true}, nil) })
		})
	case spawn:
		s.sup.job(func(ctx context.Context) { s.spawn(ctx, c) })
	case end:
		s.watched = nil
		s.limit.off()
		c.decided = true
		s.sup.job(func(ctx context.Context) { s.end(ctx, c) })
	}
}

// await goes on once everything that the actor comes after is ready.
func (s *slot) await() {
	name, opens := s.sup.gate.closed(s.actor.spec.After)
	s.opens = opens
	if name == "" {
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
	if s.actor.spec.Mode != config.Task {
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

// fetch waits for a message, and claims it.
func (s *slot) fetch(ctx context.Context) {
	p := fence.NewProcess()
	lease, d, err := s.sup.box.StartTask(ctx, s.name, p, s.actor.spec.LeaseTTL)
	s.post(func() {
		s.cancel = nil
		switch {
		case err == nil:
			s.child = &child{slot: s, holder: lease.Holder(), task: &d}
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

// refused says what an error of the store means for the next start.
func (s *slot) refused(err error) (after, error) {
	if refusal.Has(err, refusal.OutcomeUnknown) {
		s.sup.fail(err)
	}
	return after{hopeless: refusal.Has(err, refusal.LeaseCorrupt)}, err
}

// watch waits until the process is ready, and looks after it.
func (s *slot) watch() {
	s.history.starts++
	s.watched = s.child.proc.Exited()
	spec := s.actor.spec
	switch {
	case s.child.cause != 0: // decided while it was being made
		s.step(kill)
		return
	case spec.Mode == config.Task && spec.Timeout > 0:
		s.limit.set(s.child.startedAt, spec.Timeout)
	case spec.Mode == config.Worker && spec.Watchdog > 0:
		s.limit.set(s.sup.now(), spec.Watchdog)
	}
	if spec.Ready == nil || spec.Mode == config.Task || s.child.early {
		s.step(ready)
		return
	}
	s.clock.set(s.sup.now(), spec.Ready.Timeout)
	if spec.Ready.Notify {
		return
	}
	c := s.child
	ctx, cancel := context.WithCancel(s.sup.base)
	s.cancel = cancel
	s.sup.job(func(context.Context) {
		defer cancel()
		if s.sup.probe(ctx, spec, s.name) == nil {
			s.isReady(c)
		}
	})
}

// isReady says that c was seen, or says itself, to be ready.
func (s *slot) isReady(c *child) {
	s.post(func() {
		if c.early || s.child == c && s.life.at != starting {
			return
		}
		c.early = true
		s.sup.note(c, eventReady, "")
		if s.child == c {
			s.step(ready)
		}
	})
}

// terminate asks the process to end. It may take stop.timeout.
func (s *slot) terminate() {
	c, limit := s.child, s.actor.spec.Stop.Timeout
	c.because(byStop, limit.String(), mailbox.Ref{})
	if s.watched == nil { // it was not wanted any more before it was watched
		s.watched = c.proc.Exited()
		s.history.starts++
	}
	if s.sup.hurried.Load() {
		c.because(byForce, "a second signal", mailbox.Ref{})
		s.step(kill)
		return
	}
	c.notify(protocol.NotifyDrain, nil)
	if err := c.proc.Stop(s.actor.stopSignal); err != nil {
		s.log.Warn("stop signal not sent", "err", err)
	}
	s.clock.set(s.sup.now(), limit)
}

// rang is called when the clock of the state has run out.
func (s *slot) rang() {
	switch s.life.at {
	case stopping:
		s.log.Info("process did not end in time", "pid", s.child.proc.PID(), "elapsed", s.actor.spec.Stop.Timeout)
		s.child.because(byForce, s.actor.spec.Stop.Timeout.String(), mailbox.Ref{})
		s.step(stopTimeout)
	case starting:
		s.killFor(byUnready, eventNotReady, s.actor.spec.Ready.Timeout, mailbox.Ref{})
	case backoff:
		s.step(elapsed)
	}
}

// exceeded is called when the child's limit has run out: the time that a task
// may take, or the time since a worker's last sign of life.
func (s *slot) exceeded() {
	spec := s.actor.spec
	if spec.Mode == config.Task {
		s.killFor(byTimeout, eventTimeout, spec.Timeout, s.child.ref())
		return
	}
	now := s.sup.now()
	silent := time.Duration(now - fence.Instant(s.child.aliveAt.Load()))
	if s.child.pending.Load() > 0 {
		silent = 0
	}
	if silent < spec.Watchdog {
		s.limit.set(now, spec.Watchdog-silent)
		return
	}
	s.killFor(byWatchdog, eventWatchdog, spec.Watchdog, mailbox.Ref{})
}

// killFor ends the child at once for a reason of ours.
func (s *slot) killFor(why cause, kind string, limit time.Duration, about mailbox.Ref) {
	if s.child.because(why, limit.String(), about) {
		s.sup.note(s.child, kind, why.String()+" after "+limit.String())
	}
	s.step(kill)
}

// condemn ends c for the message about. Where c is only being made, watch sees
// to it; where it has ended, there is nothing to do.
func (s *slot) condemn(c *child, why cause, limit string, about mailbox.Ref) {
	s.post(func() {
		if c.because(why, limit, about) && s.child == c {
			s.step(kill)
		}
	})
}

// gone is called when nothing of c is left and its end is on record. held are the
// messages that ended with it.
func (s *slot) gone(c *child, held []mailbox.Ref) {
	e := c.death()
	now := s.sup.now()
	s.child = nil
	s.history.success = e.cause == byItself && e.code == 0
	if stable(s.actor.spec.Intensity, time.Duration(now-c.startedAt)) {
		s.history.failures = 0
	}
	a := after{started: true, success: s.history.success, asked: e.cause == byStop || e.cause == byForce || e.cause == byCancel}
	if s.actor.spec.Mode != config.Task && !a.asked {
		a.spent = s.history.budget.count(s.actor.spec.Intensity, now, held)
	}
	var trouble error
	if !a.success && !a.asked {
		trouble = refusal.New(refusal.Failed, "the last process ended: "+e.lost().Reason, "", "see `sovereign logs "+s.name.Actor+"`")
	}
	s.proceed(a, trouble)
}

// unspawned is called when no process came of a start.
func (s *slot) unspawned(err error) {
	s.child = nil
	a, err := s.refused(err)
	if !a.hopeless {
		a.spent = s.history.budget.count(s.actor.spec.Intensity, s.sup.now(), nil)
	}
	s.proceed(a, err)
}

// proceed decides what comes next, and says so.
func (s *slot) proceed(a after, trouble error) {
	a.wanted = s.life.want && !s.sup.failed()
	spec := s.actor.spec
	e := next(spec.Mode, spec.Restart, a)
	s.history.trouble = trouble
	switch e {
	case later:
		s.history.wait = delay(spec.Backoff, s.history.failures, rand.Float64())
		s.history.failures++
		s.sup.noteSlot(s, eventRestarting, "in "+s.history.wait.Round(time.Millisecond).String())
	case giveUp:
		s.log.Error("slot failed", "err", trouble)
		s.sup.noteSlot(s, eventGaveUp, s.why())
	case rest:
		s.history.trouble = nil
	}
	s.step(e)
}

// begin forgives what was, when a person starts the slot (F4).
func (s *slot) begin(e event) {
	switch s.life.at {
	case backoff, failed, exited, stopped:
		s.history.budget.reset()
		s.history.failures = 0
	}
	s.step(e)
}

// signal sends sig to the process, whatever the state.
func (s *slot) signal(sig syscall.Signal) (bool, error) {
	if !s.life.at.lives() || s.child == nil {
		return false, nil
	}
	return true, s.child.proc.Signal(sig)
}

// settle sends to reply once the slot has settled.
func (s *slot) settle(reply chan<- view) {
	s.waiters = append(s.waiters, reply)
	s.answer()
}

func (s *slot) answer() {
	if !s.life.at.settled() || len(s.waiters) == 0 {
		return
	}
	for _, reply := range s.waiters {
		reply <- *s.seen.Load()
	}
	s.waiters = nil
}

// why is the trouble as text.
func (s *slot) why() string {
	if s.history.trouble == nil {
		return ""
	}
	return s.history.trouble.Error()
}
