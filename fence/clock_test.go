package fence_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// P9, mistake 9: while the supervisor does not run, its children's time does not
// run out. The gap is left out before the next instant is told. Without the
// subtraction in look this fails.
func TestClock_LeavesOutWhatItDidNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asleep atomic.Int64 // the source jumps: a stopped process sees that
		source := func() fence.Instant { return fence.Instant(1 + int64(time.Since(start)) + asleep.Load()) }
		var gaps []time.Duration
		told := make(chan time.Duration, 10)
		c := fence.NewClock(source, func(d time.Duration) { told <- d })
		done := c.Need()
		deadline := c.Now() + fence.Instant(10*time.Second)
		time.Sleep(4 * time.Second)
		asleep.Store(int64(8 * time.Hour))
		if now := c.Now(); now >= deadline {
			t.Fatalf("a deadline 6 s away has passed by %v after 8 h of sleep", time.Duration(now-deadline))
		}
		time.Sleep(4 * time.Second)
		if now := c.Now(); now >= deadline {
			t.Fatalf("the deadline passed early")
		}
		time.Sleep(4 * time.Second)
		if now := c.Now(); now < deadline {
			t.Fatalf("the deadline is still %v away after 12 s of running", time.Duration(deadline-now))
		}
		for len(told) > 0 {
			gaps = append(gaps, <-told)
		}
		if len(gaps) != 1 || gaps[0] < 8*time.Hour || gaps[0] > 8*time.Hour+2*fence.Beat {
			t.Errorf("gaps told: %v, want one of about 8 h", gaps)
		}
		done()
		done()
		time.Sleep(2 * fence.Beat) // the look that finds no need is the last one
	})
}

// Whoever is told of a gap may hang, with a terminal that takes nothing more: the clock
// goes on for everybody. Call onGap with the lock held, or on the caller's
// goroutine, and this hangs.
func TestClock_GapIsToldAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Int64
		at.Store(1)
		hangs := make(chan struct{})
		c := fence.NewClock(func() fence.Instant { return fence.Instant(at.Load()) }, func(time.Duration) { <-hangs })
		done := c.Need()
		defer func() { close(hangs); done(); time.Sleep(2 * fence.Beat) }()
		at.Add(int64(time.Hour))
		first := c.Now()
		at.Add(int64(time.Millisecond))
		if second := c.Now(); second-first != fence.Instant(time.Millisecond) {
			t.Errorf("%v passed", time.Duration(second-first))
		}
	})
}

// A clock that nobody needs does not beat, and time in which nobody looked is no
// gap: an idle supervisor is no stopped one.
func TestClock_IdleIsNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := fence.NewClock(func() fence.Instant { return fence.Instant(1 + time.Since(start)) },
			func(d time.Duration) { t.Errorf("a gap of %v", d) })
		c.Need()()
		time.Sleep(time.Hour)
		first := c.Now()
		if first < fence.Instant(time.Hour) {
			t.Errorf("an idle hour was left out: %v", time.Duration(first))
		}
		done := c.Need()
		defer func() { done(); time.Sleep(2 * fence.Beat) }()
		time.Sleep(time.Minute)
		if passed := c.Now() - first; passed != fence.Instant(time.Minute) {
			t.Errorf("a minute of running took %v", time.Duration(passed))
		}
	})
}

// The clock does not run backwards whatever its source does within a gap.
func TestClock_NeverBackwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Int64
		at.Store(1)
		c := fence.NewClock(func() fence.Instant { return fence.Instant(at.Load()) }, nil)
		done := c.Need()
		defer func() { done(); time.Sleep(2 * fence.Beat) }()
		last := c.Now()
		for _, step := range []time.Duration{time.Second, time.Hour, time.Millisecond, 3 * time.Second, 0, 48 * time.Hour} {
			at.Add(int64(step))
			now := c.Now()
			if now < last {
				t.Fatalf("from %d to %d after a step of %v", last, now, step)
			}
			last = now
		}
	})
}
