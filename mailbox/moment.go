package mailbox

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// A moment is when a transaction decides, and by which chance: read before it, so
// that a function that is run again decides the same.
type moment struct {
	at     time.Time     // wall clock, UTC
	now    fence.Instant // lease clock; a function that judges a lease or a claim by it reads it anew each time
	random float64       // of the jitter, from 0 to 1
}

func (b *Box) moment() moment {
	return moment{at: b.wall().UTC(), now: b.leases.Now(), random: b.random()}
}
