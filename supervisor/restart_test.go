package supervisor

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
)

// F6, F7: what follows an exit is the policy's table, cell by cell.
func TestNext_PolicyTable(t *testing.T) {
	ok, bad := after{wanted: true, started: true, success: true}, after{wanted: true, started: true}
	for _, c := range []struct {
		mode   config.Mode
		policy config.Restart
		after  after
		want   event
	}{
		{config.Worker, config.Always, ok, later},
		{config.Worker, config.Always, bad, later},
		{config.Worker, config.OnFailure, ok, finish},
		{config.Worker, config.OnFailure, bad, later},
		{config.Worker, config.Never, ok, finish},
		{config.Worker, config.Never, bad, finish},
		{config.Daemon, config.Always, ok, later},
		{config.Daemon, config.OnFailure, ok, finish},
		{config.Task, config.Always, ok, again},
		{config.Task, config.Never, bad, again},
		{config.Task, config.Always, after{wanted: true}, later},
		{config.Task, config.Always, after{wanted: true, spent: true}, giveUp},
		{config.Worker, config.Always, after{wanted: true, started: true, spent: true}, giveUp},
		{config.Worker, config.Never, after{wanted: true, spent: true}, giveUp},
		{config.Worker, config.OnFailure, after{wanted: true, started: true, success: true, spent: true}, finish},
		{config.Worker, config.Always, after{wanted: true, started: true, asked: true}, again},
		{config.Worker, config.Always, after{started: true, success: true}, rest},
		{config.Worker, config.Always, after{wanted: true, hopeless: true}, giveUp},
	} {
		if got := next(c.mode, c.policy, c.after); got != c.want {
			t.Errorf("next(%s, %s, %+v) = %s, want %s", c.mode, c.policy, c.after, got, c.want)
		}
	}
}

// F9: what is not wanted is never started again, whatever else is known.
func TestNext_UnwantedRests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := after{asked: rapid.Bool().Draw(t, "asked"), started: rapid.Bool().Draw(t, "started"),
			success: rapid.Bool().Draw(t, "success"), spent: rapid.Bool().Draw(t, "spent"), hopeless: rapid.Bool().Draw(t, "hopeless")}
		mode := rapid.SampledFrom([]config.Mode{config.Task, config.Worker, config.Daemon}).Draw(t, "mode")
		policy := rapid.SampledFrom([]config.Restart{config.Always, config.OnFailure, config.Never}).Draw(t, "policy")
		if got := next(mode, policy, a); got != rest {
			t.Fatalf("next = %s, want rest", got)
		}
	})
}

// The wait is initial × factor^n within ± jitter, never beyond max × (1 + jitter),
// never negative, whatever the numbers.
func TestDelay_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := config.Backoff{
			Initial: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "initial")),
			Max:     time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "max")),
			Factor:  rapid.Float64Range(1, 1e9).Draw(t, "factor"),
			Jitter:  rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		n := rapid.IntRange(0, 1<<40).Draw(t, "n")
		draw := rapid.Float64Range(0, 0.999999).Draw(t, "draw")
		got := delay(b, n, draw)
		want := math.Min(float64(b.Initial)*math.Pow(b.Factor, float64(n)), float64(b.Max))
		if b.Initial == 0 {
			want = 0
		}
		low, high := want*(1-b.Jitter)-1, want*(1+b.Jitter)+1
		if float64(got) < low || float64(got) > high || got < 0 {
			t.Fatalf("delay = %s, want from %s to %s", got, time.Duration(low), time.Duration(high))
		}
	})
}

// F1: with the defaults the waits grow: 0.1 s, 0.2 s, 0.4 s, …, 30 s.
func TestDelay_Grows(t *testing.T) {
	b := config.Backoff{Initial: 100 * time.Millisecond, Max: 30 * time.Second, Factor: 2, Jitter: 0.2}
	for n, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		if got := delay(b, n, 0.5); got != want {
			t.Errorf("delay %d = %s, want %s", n, got, want)
		}
	}
	if got := delay(b, 50, 0.5); got != b.Max {
		t.Errorf("delay 50 = %s, want %s", got, b.Max)
	}
}

// F1: the first end is not waited for, a failed start is; from there the waits grow,
// until a process has run for longer than the longest of them.
func TestStreak(t *testing.T) {
	b := config.Backoff{Initial: 100 * time.Millisecond, Max: 30 * time.Second, Factor: 2}
	var k streak
	for n, want := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		k.ran(b, 29*time.Second)
		if got := k.wait(b, true, 0.5); got != want {
			t.Errorf("end %d waits %s, want %s", n, got, want)
		}
	}
	k.ran(b, 30*time.Second)
	if got := k.wait(b, true, 0.5); got != 0 {
		t.Errorf("the first end after a stable run waits %s", got)
	}
	k = 0
	for n, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		if got := k.wait(b, false, 0.5); got != want {
			t.Errorf("failed start %d waits %s, want %s", n, got, want)
		}
	}
}

// F2: ends count within the window whatever the uptime. The budget says what a
// count over the whole history says.
func TestBudget_CountsAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := config.Intensity{Restarts: rapid.IntRange(0, 6).Draw(t, "restarts"),
			Within: time.Duration(rapid.Int64Range(1, 100).Draw(t, "within"))}
		var b budget
		var ends []fence.Instant
		now := fence.Instant(0)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 60), 1, 40).Draw(t, "gaps") {
			now += fence.Instant(gap)
			ends = append(ends, now)
			n := 0
			for _, at := range ends {
				if at > now-fence.Instant(i.Within) {
					n++
				}
			}
			if got := b.count(i, now, nil); got != (n > i.Restarts) {
				t.Fatalf("count at %d = %v with %d of %d ends in the window", now, got, n, i.Restarts)
			}
			if len(b.ends) > n {
				t.Fatalf("%d ends are kept, %d are in the window", len(b.ends), n)
			}
		}
	})
}

// Deaths of a worker on one and the same message count once; on others, each.
func TestBudget_OneMessageCountsOnce(t *testing.T) {
	i := config.Intensity{Restarts: 2, Within: time.Minute}
	m := func(ids ...mailbox.ID) (refs []mailbox.Ref) {
		for n, id := range ids {
			refs = append(refs, mailbox.Ref{ID: id, Token: fence.Token(n + 1)})
		}
		return refs
	}
	var b budget
	for n := range 10 {
		if b.count(i, fence.Instant(n), m(7)) {
			t.Fatalf("death %d on one message spent the budget", n)
		}
	}
	if b.count(i, 11, m(7, 8)) {
		t.Fatal("the second death spent a budget of two")
	}
	if !b.count(i, 12, m(9)) {
		t.Fatal("deaths on three messages did not spend a budget of two")
	}
	b.reset()
	if b.count(i, 13, m(9)) {
		t.Fatal("the budget was not forgotten")
	}
}
