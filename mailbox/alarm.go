package mailbox

import (
	"context"
	"sync"
	"time"
)

// An alarm is when something that waits in the store is due next. Who adds
// something tells it, and who looks after it is woken where that is sooner.
type alarm struct {
	mu   sync.Mutex // guards next
	next time.Time  // what the timer waits for; zero: for nothing, or it looks just now
	wake chan struct{}
}

func newAlarm() *alarm { return &alarm{wake: make(chan struct{}, 1)} }

// set says that something is due at (zero: nothing).
func (a *alarm) set(at time.Time) {
	if at.IsZero() {
		return
	}
	a.mu.Lock()
	sooner := a.next.IsZero() || at.Before(a.next)
	a.mu.Unlock()
	if sooner {
		a.again()
	}
}

// again has what is due looked at once more.
func (a *alarm) again() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *alarm) waitsFor(next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = next
}

// watch calls look whenever something may be due, until ctx ends. look returns
// when the next thing is due (zero: none) and, where it failed, an error: then it
// is called again after restPause. What comes within the same apart goes together.
func (a *alarm) watch(ctx context.Context, wall func() time.Time, apart time.Duration, look func(context.Context) (time.Time, error)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		a.waitsFor(time.Time{}) // what is added from here on may be missed by the look
		next, err := look(ctx)
		pause := time.Duration(-1)
		switch {
		case err != nil:
			pause = restPause
		case !next.IsZero():
			pause = max(apart, next.Sub(wall()))
		}
		a.waitsFor(next)
		var fire <-chan time.Time
		if pause >= 0 {
			timer.Reset(pause)
			fire = timer.C
		}
		select {
		case <-ctx.Done():
		case <-fire:
		case <-a.wake:
		}
	}
}
