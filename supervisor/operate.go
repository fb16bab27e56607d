package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Start has every slot of an actor run, and returns once each is up, looks for
// work, waits for another actor, or could not be started, which is an error
// that says why. The wish is durable, and forgives failures so far (F4).
func (sup *Supervisor) Start(ctx context.Context, name string) error {
	return sup.operate(ctx, name, start, func() error { return sup.box.SetStopped(context.WithoutCancel(ctx), name, false) })
}

// Stop ends every process of an actor, and returns once nothing of their trees is
// left: after stop.signal, and SIGKILL at stop.timeout. The wish is durable: the
// actor stays stopped, over restarts of the supervisor too, until it is started.
func (sup *Supervisor) Stop(ctx context.Context, name string) error {
	return sup.operate(ctx, name, stop, func() error { return sup.box.SetStopped(context.WithoutCancel(ctx), name, true) })
}

// Restart ends every process of an actor and starts new ones, as Stop and Start
// do. Of restarts that are asked for at one time one is made.
func (sup *Supervisor) Restart(ctx context.Context, name string) error {
	return sup.operate(ctx, name, restart, func() error { return sup.box.SetStopped(context.WithoutCancel(ctx), name, false) })
}

// operate makes a wish durable, tells the slots of it, and waits until they have
// settled.
func (sup *Supervisor) operate(ctx context.Context, name string, wish event, record func() error) error {
	told, err := sup.tell(name, wish, record)
	if err != nil {
		return err
	}
	var problems []error
	for _, w := range told {
		problems = append(problems, w.wait(ctx))
	}
	return errors.Join(problems...)
}

// tell makes a wish durable and tells the slots of it. No reload comes in between.
func (sup *Supervisor) tell(name string, wish event, record func() error) ([]wished, error) {
	sup.changing.RLock()
	defer sup.changing.RUnlock()
	a, err := sup.actor(name)
	if err != nil {
		return nil, err
	}
	if a.removed && wish != stop {
		return nil, refusal.New(refusal.UnknownActor, name+" is not declared any more", "it finishes what it has, and ends",
			"declare it in actors.yaml, then run `sovereign reload`")
	}
	if err := sup.operable(); err != nil {
		return nil, err
	}
	if err := record(); err != nil {
		return nil, err
	}
	slots := a.slots
	if wish == stop {
		slots = a.all()
	}
	out := make([]wished, len(slots))
	for i, s := range slots {
		out[i] = s.wish(wish)
	}
	return out, nil
}

// operable refuses what comes before the slots run or after they stop. Call it with
// changing held.
func (sup *Supervisor) operable() error {
	if sup.isClosing() {
		return stoppingNow()
	}
	return sup.begun()
}

// begun refuses what comes before the slots run. Call it with changing held.
func (sup *Supervisor) begun() error {
	if !sup.isRunning() {
		return refusal.New(refusal.Unavailable, "the supervisor is starting", "it recovers what its predecessor left", "try again").Later()
	}
	return nil
}

func stoppingNow() error {
	return refusal.New(refusal.Unavailable, "the supervisor is stopping", "", "start it again").Later()
}

// A wished is a slot that was told what is wanted.
type wished struct {
	slot  *slot
	event event
	reply chan view // nil where the slot has ended
}

// wish tells the slot what is wanted.
func (s *slot) wish(e event) wished {
	reply := make(chan view, 1)
	w := wished{slot: s, event: e}
	if s.post(func() {
		if s.closing && e != stop {
			return // it ends; wait hears of that
		}
		s.begin(e)
		s.settle(reply)
	}) {
		w.reply = reply
	}
	return w
}

// wait returns once the slot has settled.
func (w wished) wait(ctx context.Context) error {
	if w.reply == nil {
		return w.ended()
	}
	select {
	case v := <-w.reply:
		return w.slot.judge(v, w.event)
	case <-w.slot.done:
		select {
		case v := <-w.reply: // it settled, and ended with that
			return w.slot.judge(v, w.event)
		default:
			return w.ended()
		}
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", w.event, w.slot.name, context.Cause(ctx))
	}
}

// ended is the answer for a slot that has ended.
func (w wished) ended() error {
	switch {
	case w.event == stop:
		return nil
	case w.slot.sup.isClosing():
		return stoppingNow()
	}
	return refusal.New(refusal.WrongState, w.event.String()+" "+w.slot.name.String(), "a reload has taken it away meanwhile",
		"see `sovereign status "+w.slot.name.Actor+"`")
}

// judge is nil where the slot is as it was wished.
func (s *slot) judge(v view, wish event) error {
	verb := wish.String() + " " + s.name.String()
	switch {
	case v.at == stuck:
		return refusal.New(refusal.Failed, verb, v.trouble.Error(), refusal.Of(v.trouble).Next)
	case wish == stop && v.at != stopped, wish != stop && v.at == stopped:
		return refusal.New(refusal.WrongState, verb, "another command came in between; it is "+v.at.String(),
			"see `sovereign status "+s.name.Actor+"`")
	case wish != stop && (v.at == backoff || v.at == failed) && v.trouble != nil:
		return refusal.New(refusal.Failed, verb, v.trouble.Error(), refusal.Of(v.trouble).Next).Because(v.trouble)
	}
	return nil
}

// Signal sends a signal, by its name with or without SIG, to every process of an
// actor, whatever its state. It is refused, wrong_state, where none lives.
func (sup *Supervisor) Signal(ctx context.Context, name, sig string) error {
	a, err := sup.actor(name)
	if err != nil {
		return err
	}
	number := signalNumber(sig)
	if number == 0 {
		return refusal.New(refusal.BadRequest, fmt.Sprintf("there is no signal %.20q", sig), "signals are named HUP, INT, USR1, …, or given by number", "see `kill -l`")
	}
	if !sup.isRunning() { // else nothing is waited for: a reload holds changing while it writes
		sup.changing.RLock()
		err = sup.begun() // what is stopping may still be signalled (C10)
		sup.changing.RUnlock()
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var problems []error
	reached := 0
	each([]*actor{a}, func(s *slot) {
		ok, err := s.signalled(ctx, number)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			problems = append(problems, fmt.Errorf("signal %s: %w", s.name, err))
		} else if ok {
			reached++
		}
	})
	if reached == 0 && len(problems) == 0 {
		return refusal.New(refusal.WrongState, name+" was not signalled", "none of its processes lives", "see `sovereign status "+name+"`")
	}
	return errors.Join(problems...)
}

func (s *slot) signalled(ctx context.Context, sig syscall.Signal) (reached bool, err error) {
	type answer struct {
		ok  bool
		err error
	}
	reply := make(chan answer, 1)
	if !s.post(func() {
		ok, err := s.signal(sig)
		if ok {
			s.sup.note(s.child, protocol.EventSignalled, "SIG"+signalName(sig))
		}
		reply <- answer{ok, err}
	}) {
		return false, nil
	}
	select {
	case a := <-reply:
		return a.ok, a.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Pause stops deliveries to an actor, durably. Processes, and what they work on,
// go on. It is refused, wrong_state, for a daemon, which gets none.
func (sup *Supervisor) Pause(ctx context.Context, name string) error {
	return sup.pause(ctx, name, true)
}

// Resume ends Pause.
func (sup *Supervisor) Resume(ctx context.Context, name string) error {
	return sup.pause(ctx, name, false)
}

func (sup *Supervisor) pause(ctx context.Context, name string, paused bool) error {
	a, err := sup.actor(name)
	if err != nil {
		return err
	}
	if paused && a.def.spec.Mode == config.Daemon {
		return refusal.New(refusal.WrongState, name+" was not paused", "it is a daemon, and daemons get no messages",
			"`sovereign stop "+name+"` ends its processes")
	}
	return sup.box.SetPaused(ctx, name, paused)
}
