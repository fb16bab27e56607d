package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// P9: the lease clock stands still while the supervisor does not run, and a timer
// does not: an alarm that fires early is set for what is left.
func TestAlarm_FollowsTheLeaseClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stoodStill := time.Duration(0)
		now := func() fence.Instant { return fence.Instant(time.Since(began) - stoodStill) }
		var a alarm
		a.set(now(), 10*time.Second)
		time.Sleep(3 * time.Second)
		stoodStill = 5 * time.Second // the supervisor was stopped, and its timers went on
		<-a.C()
		if a.rang(now()) {
			t.Fatalf("it rang at %d, before 10 s of the lease clock", now())
		}
		<-a.C()
		if !a.rang(now()) {
			t.Fatal("it did not ring")
		}
		if got := time.Since(began); got != 15*time.Second {
			t.Errorf("it rang after %s, want 15s", got)
		}
		if a.C() != nil {
			t.Error("it rings twice")
		}
	})
}

// An alarm that is off never rings, whatever it was set to.
func TestAlarm_Off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm
		a.off()
		a.set(0, time.Second)
		time.Sleep(2 * time.Second) // its timer has fired, and nobody has looked
		a.off()
		select {
		case <-a.C():
			t.Error("it rang")
		case <-time.After(time.Hour):
		}
	})
}
