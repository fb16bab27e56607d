package supervisor

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// An alarm rings once, at an instant of the lease clock. That clock stands still
// while the supervisor does not run (P9) and a timer does not, so a timer that
// fires early is set again. The zero alarm is off and holds no timer.
type alarm struct {
	timer *time.Timer
	at    fence.Instant

	need func() (done func()) // has the lease clock looked after while it is set; nil = not needed
	done func()               // ends that; nil while it is off
}

// set makes it ring d from now, and not when it was to ring before.
func (a *alarm) set(now fence.Instant, d time.Duration) {
	a.off()
	a.at = now + fence.Instant(d)
	a.timer = time.NewTimer(d)
	if a.need != nil {
		a.done = a.need()
	}
}

// off makes it not ring.
func (a *alarm) off() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if a.done != nil {
		a.done()
		a.done = nil
	}
}

// C is where it rings; nil, which never does, while it is off.
func (a *alarm) C() <-chan time.Time {
	if a.timer == nil {
		return nil
	}
	return a.timer.C
}

// again makes it ring at an instant; 0 = not at all.
func (a *alarm) again(now, at fence.Instant) {
	a.off()
	if at != 0 {
		a.set(now, time.Duration(max(0, at-now)))
	}
}

// instant is when it rings; 0 = it is off.
func (a *alarm) instant() fence.Instant {
	if a.timer == nil {
		return 0
	}
	return a.at
}

// rang is called when C has fired, and reports whether the instant has come. If
// it has, the alarm is off; else it is set for what is left.
func (a *alarm) rang(now fence.Instant) bool {
	if now < a.at {
		a.set(now, time.Duration(a.at-now))
		return false
	}
	a.off()
	return true
}
