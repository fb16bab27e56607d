package supervisor

import (
	"context"
	"fmt"

	"github.com/sovereign-run/sovereign/refusal"
)

// Hold begins nothing new, until Release: no process is started, no work looked for and
// no readiness probed. It returns once nothing is half done, so that HandOver has no more
// to wait for than what happens by itself. It is refused, unavailable, and everything
// goes on as before, where that is not so when ctx ends, or while something does not
// die of SIGKILL.
func (sup *Supervisor) Hold(ctx context.Context) error {
	if err := sup.holdAll(); err != nil {
		return err
	}
	for {
		changed := sup.changes.wait()
		why := sup.busy()
		if why == "" {
			return nil
		}
		select {
		case <-changed:
		case <-sup.closing:
			sup.Release()
			return stoppingNow()
		case <-ctx.Done():
			sup.Release()
			return refusal.New(refusal.Unavailable, "the processes cannot be passed on now", why, "wait until it is done, then try again").Later()
		}
	}
}

// holdAll holds every slot. No reload comes in between: what is made by one would not be
// held.
func (sup *Supervisor) holdAll() error {
	sup.changing.Lock()
	defer sup.changing.Unlock()
	if err := sup.operable(); err != nil {
		return err
	}
	each(sup.actors(), func(s *slot) { s.call(s.hold) })
	return nil
}

// Release ends Hold.
func (sup *Supervisor) Release() {
	each(sup.actors(), func(s *slot) { s.call(s.release) })
}

// busy says what is half done; "" = nothing is.
func (sup *Supervisor) busy() string {
	if sup.enforcing.Load() > 0 {
		return "a message that was cancelled is being ended"
	}
	for _, gone := range sup.lingers {
		select {
		case <-gone:
		default:
			return "something that a dead supervisor left does not die"
		}
	}
	why := ""
	for _, a := range sup.actors() {
		for _, s := range a.all() {
			s.call(func() {
				if !s.quiet() {
					why = fmt.Sprintf("%s is %s", s.name, s.life.at)
				}
			})
			if why != "" {
				return why
			}
		}
	}
	return ""
}

func (s *slot) hold() {
	s.held = true
	if s.cancel != nil && (s.life.at == idle || s.life.at == starting) {
		s.cancel()
	}
}

func (s *slot) release() {
	s.held = false
	s.seekAgain()
	if s.life.at == starting && s.child.asksToBeSeen() && !s.child.early {
		s.probe()
	}
}

// quiet reports whether nothing of the slot is half done: that it can be described
// between two events.
func (s *slot) quiet() bool {
	if s.owing {
		return false
	}
	switch s.life.at {
	case stopped, waiting, up, stopping, backoff, failed, exited:
		return true
	case starting:
		return !s.probing
	case idle:
		return s.cancel == nil
	}
	return false
}
