package supervisor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// A slot is one place of an actor. One goroutine, run, owns it; everything else
// sends it a function to call, or reads what it has published.
type slot struct {
	sup  *Supervisor
	name fence.Slot
	log  *slog.Logger
	def  atomic.Pointer[definition] // what it lives by; set by run

	mail chan func()                 // for run to call
	done chan struct{}               // closed when run calls no more
	seen atomic.Pointer[view]        // for everybody
	logs atomic.Pointer[capture.Log] // opened for the first process; nil until then

	// owned by run

	life    life
	child   *child          // nil = no process
	last    *child          // its end goes on record with the start that follows; nil = no such start is due
	watched <-chan struct{} // its exit; nil while its end is under way, or there is none
	clock   alarm           // of the state: backoff, stop.timeout, ready.timeout
	limit   alarm           // of the child: timeout, watchdog
	opens   <-chan struct{} // the dependency that is waited for
	cancel  func()          // ends what the state waits for: a message, readiness; nil = nothing
	closing bool            // the supervisor stops: run returns once the slot rests
	leaving bool            // it is not declared any more: run returns once it is stopped
	waiters []chan<- view   // who waits for the slot to settle; each has room for one
	held    bool            // it begins nothing new
	probing bool            // a job looks whether its process is ready
	counted bool            // whether it counts as ready at the gate
	owing   bool            // a job records the end of its last process
	history history         // of its ends
}

// history is what a slot remembers of its processes.
type history struct {
	starts  int           // processes started, ever
	streak  streak        // of ends without a stable run in between
	budget  budget        // ends within the window of intensity
	wait    time.Duration // the backoff that begins
	success bool          // the last process ended with status 0
	trouble error         // why the slot waits, failed or is stuck; nil = no reason
}

func newSlot(sup *Supervisor, d *definition, number int) *slot {
	s := &slot{
		sup: sup, name: fence.Slot{Actor: d.spec.Name, Number: number},
		log:  sup.log.With("actor", d.spec.Name, "slot", number),
		mail: make(chan func()), done: make(chan struct{}),
		life: life{at: stopped}, clock: alarm{need: sup.box.Leases().Need}, limit: alarm{need: sup.box.Leases().Need},
	}
	s.def.Store(d)
	s.publish()
	return s
}

// spec is the declaration that the slot lives by now.
func (s *slot) spec() *config.Actor { return s.def.Load().spec }

// run owns the slot until the supervisor closes and nothing of it is left.
func (s *slot) run() {
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
	defer close(s.done) // a successor of the slot opens the same log
	if logs := s.logs.Load(); logs != nil {
		ctx, cancel := context.WithTimeout(context.Background(), drainBound)
		defer cancel()
		if err := logs.Close(ctx); err != nil {
			s.log.Warn("log not closed", "err", err)
		}
		s.sup.tallies.closed(s.name)
	}
}

// over reports whether a slot that closes or leaves has come to its end.
func (s *slot) over() bool {
	return s.closing && (s.life.at == stopped || s.life.at == stuck) || s.leaving && s.life.at == stopped
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

// call has run call f, and reports whether it has: not once run has returned.
func (s *slot) call(f func()) bool {
	called := make(chan struct{})
	if !s.post(func() { defer close(called); f() }) {
		return false
	}
	<-called
	return true
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
		}
	}
	if next.at != before.at || next.want != before.want {
		s.publish()
	}
	if next.at == stopped && before.at != stopped {
		s.sup.noteSlot(s, protocol.EventStopped, "") // who waits for it finds the slot so
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
	case finishUp:
		s.finishUp()
	case terminate:
		s.terminate()
	case killAgain:
		c := s.child
		s.sup.job(func(ctx context.Context) { s.killAgain(ctx, c) })
	case delayStart:
		if s.history.wait <= 0 {
			s.step(elapsed)
			break
		}
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
		if s.cancel == nil { // nothing looks for work: the slot is held, or an end is to be recorded first
			s.proceed(after{asked: true}, nil)
			break
		}
		s.cancel()
		s.cancel = nil
	case giveBack:
		s.sup.job(func(ctx context.Context) {
			s.sup.living.drop(c)
			s.unstart(ctx, c, s.event(protocol.EventWithdrawn, "stopped before its process was started"))
			s.post(func() { s.child = nil; s.proceed(after{asked: true}, nil) })
		})
	case spawn:
		d, last := s.def.Load(), s.last
		s.last = nil
		s.sup.job(func(ctx context.Context) { s.spawn(ctx, c, d, last) })
	case end:
		s.watched = nil
		s.limit.off()
		c.decided = true
		s.sup.job(func(ctx context.Context) { s.end(ctx, c) })
	}
}

// begin forgives what was, when a person starts the slot (F4).
func (s *slot) begin(e event) {
	switch s.life.at {
	case backoff, failed, exited, stopped:
		s.forgive()
		s.history.starts = 0 // its restarts are counted anew
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
