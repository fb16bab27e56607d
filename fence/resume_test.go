package fence_test

import (
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// A clock that is passed on goes on where it stood: what was left out before stays so,
// and what has passed since is left out, too (P9). Start the next one at the source,
// and every deadline comes early by all of that.
func TestClock_Resume(t *testing.T) {
	source := fence.Instant(time.Hour)
	first := fence.NewClock(func() fence.Instant { return source }, nil)
	first.Resume(fence.Instant(40 * time.Minute)) // 20 minutes were left out
	source += fence.Instant(time.Second)
	at := first.Now()
	if want := fence.Instant(40*time.Minute + time.Second); at != want {
		t.Fatalf("at %v, want %v", time.Duration(at), time.Duration(want))
	}
	source += fence.Instant(3 * time.Second) // the other program starts
	next := fence.NewClock(func() fence.Instant { return source }, nil)
	next.Resume(at)
	if now := next.Now(); now != at {
		t.Errorf("it goes on at %v, want %v", time.Duration(now), time.Duration(at))
	}
	source += fence.Instant(time.Second)
	if now := next.Now(); now != at+fence.Instant(time.Second) {
		t.Errorf("a second later it is %v", time.Duration(now-at))
	}
}
