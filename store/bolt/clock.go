package bolt

import (
	"crypto/rand"
	"crypto/sha256"
	"time"
)

// leaseClock turns the machine's monotonic clock into instants that go on over
// restarts. An instant is nanoseconds on a clock of the store's own: it has no
// relation to the wall clock, and does not run while no boot or nobody ran it.
//
//	instant = monotonic + offset        within one boot
//	offset  = last instant - monotonic  at the first opening after another boot
type leaseClock struct {
	mono   func() int64
	boot   [idSize]byte
	offset int64
}

// newLeaseClock continues the clock that s recorded. source is nil for the
// machine's own clock.
func newLeaseClock(source func() (int64, string), s *state) leaseClock {
	var c leaseClock
	if source != nil {
		c.mono = func() int64 { ns, _ := source(); return ns }
	} else {
		// Anchor once and let the Go runtime do the rest: it reads the same
		// clock without a system call.
		ns, _ := machineClock()
		start := time.Now()
		c.mono = func() int64 { return ns + int64(time.Since(start)) }
		source = machineClock
	}
	_, boot := source()
	sum := sha256.Sum256([]byte(boot))
	copy(c.boot[:], sum[:])

	c.offset = s.offset
	now := c.mono()
	// Another boot, or a monotonic clock that went back (a time namespace): go
	// on from the last instant on record.
	if c.boot != s.boot || now+c.offset < s.instant {
		c.offset = s.instant - now
	}
	return c
}

func (c *leaseClock) now() int64 { return c.mono() + c.offset }

// processBoot names this process where the machine's boot has no name.
var processBoot = rand.Text()
