package fence

import (
	"sync"
	"time"
)

// A Clock is the lease clock of a running supervisor: a source that no
// wall-clock step moves, less the time during which this process did not run.
// While a machine is suspended or the supervisor stopped (SIGSTOP), its children
// may not have run either, and nobody renewed anything; so their time does not
// run out (P9). Because every deadline is an instant of this clock, leaving a gap
// out of it adds the gap to all deadlines at once, before anything is judged: Now
// itself notices.
//
// How it notices: while somebody needs deadlines (Need), a goroutine looks at the
// clock once a Beat. Two looks that lie much further apart than a beat say that
// this process did not run in between. Where nobody has a deadline nothing
// beats, and an idle fleet costs nothing.
type Clock struct {
	source func() Instant
	beat   time.Duration
	onGap  func(time.Duration)

	mu      sync.Mutex // guards all below
	gaps    Instant    // what has been left out so far
	seen    Instant    // the source at the last look; 0 while nothing beats
	need    int
	beating bool // a goroutine, watch, runs; it ends by itself at the first beat without need
}

// Beat is how often a clock with deadlines looks at itself. A wait of two beats
// between looks is a busy machine; a longer one is a gap.
const Beat = 100 * time.Millisecond

// NewClock returns the clock over source. onGap, which may be nil, is told of each
// gap that is left out, on a goroutine of its own: whatever holds it up, a blocked
// terminal for example, holds up nobody who asks the clock.
func NewClock(source func() Instant, onGap func(time.Duration)) *Clock {
	return &Clock{source: source, beat: Beat, onGap: onGap}
}

// Resume has the clock go on from at, at which the program before this one has passed on
// all that it looked after: what has passed since is left out. Call it before anything
// else. A clock that is not there yet is left as it is.
func (c *Clock) Resume(at Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaps = max(0, c.source()-at)
}

// Now is the present instant. It does not run backwards.
func (c *Clock) Now() Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

// look reads the source and leaves out what passed while we did not run. A gap is
// left out whole, with the part of a beat before it: nobody's time runs out
// early, and late by a beat at most.
func (c *Clock) look() Instant {
	now := c.source()
	if c.seen != 0 {
		if gap := now - c.seen; gap > 2*Instant(c.beat) {
			c.gaps += gap
			if c.onGap != nil {
				go c.onGap(time.Duration(gap))
			}
		}
		c.seen = max(c.seen, now)
	}
	return now - c.gaps
}

// Need says that somebody has a deadline on this clock, until the returned
// function is called.
func (c *Clock) Need() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need++
	if !c.beating {
		c.beating = true
		c.seen = c.source()
		go c.watch()
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.need--
	})
}

// watch looks at the clock once a beat until nobody needs it.
func (c *Clock) watch() {
	t := time.NewTicker(c.beat)
	defer t.Stop()
	for range t.C {
		if !c.goOn() {
			return
		}
	}
}

// goOn makes one look and reports whether there is need of another.
func (c *Clock) goOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if c.need == 0 {
		c.beating, c.seen = false, 0
	}
	return c.beating
}
