package mailbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A message that nobody claims is DEAD at the very moment its time to live is over,
// also one that waits in a group, for its due time, or for a paused actor; whoever
// waits for it is told, and it says why. Remove the alarm and this fails.
func TestRun_EndsWhatHasWaitedTooLong(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		go func() { _ = box.Run(t.Context()) }()
		if err := box.SetPaused(t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		sendTo(t, box, mailbox.Outgoing{Group: "g"})
		synctest.Wait()
		for ttl, m := range map[time.Duration]mailbox.Outgoing{
			7 * time.Second:         {},
			1500 * time.Millisecond: {Group: "g"},
			time.Minute:             {Delay: time.Hour},
		} {
			m.TTL = ttl
			id := sendTo(t, box, m)
			d, err := box.Show(t.Context(), id)
			if err != nil || !d.LapsesAt.Equal(time.Now().Add(ttl)) {
				t.Fatal(d.LapsesAt, err)
			}
			go func() {
				d, err := box.Await(t.Context(), id)
				if err != nil || d.State != mailbox.Dead || d.LastFailure.Category != mailbox.CategoryExpired || time.Since(start) != ttl {
					t.Errorf("%s after %s, want after %s: %+v, %v", d.State, time.Since(start), ttl, d.LastFailure, err)
				}
			}()
		}
		time.Sleep(time.Hour)
		evs, _, err := box.Events(t.Context(), 0, 0)
		n := 0
		for _, ev := range evs {
			if ev.Kind == protocol.EventDead && ev.Category == string(mailbox.CategoryExpired) {
				n++
			}
		}
		if err != nil || n != 3 {
			t.Fatalf("%d events, %v", n, err)
		}
	})
}

// No answer depends on the timer: past its time to live a message is not claimable,
// by id or otherwise. One that is worked on goes on, and is DEAD where it would be
// NEW again; one that completes is DONE.
func TestClaim_NotPastTheTimeToLive(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := context.Background()
	a := h.MustBegin(t, "work", 1)
	var ids []mailbox.ID
	for range 4 {
		s, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", TTL: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	failing, released, done := h.MustClaim(t, a, ids[0]), h.MustClaim(t, a, ids[1]), h.MustClaim(t, a, ids[2])
	h.Advance(5 * time.Second)
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	_, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: ids[3]})
	refused(t, "claim past the time to live", err, refusal.MessageNotClaimable)
	if d := h.MustShow(t, ids[3]); d.State != mailbox.New || !strings.Contains(d.Why, "time to live") {
		t.Fatalf("%s: %q", d.State, d.Why)
	}
	if err := h.Box.LapseDue(ctx); err != nil {
		t.Fatal(err)
	}
	h.MustSettle(t, a, mailboxtest.RefOf(failing), mailboxtest.Failed("x"))
	h.MustSettle(t, a, mailboxtest.RefOf(released), mailboxtest.Released())
	h.MustSettle(t, a, mailboxtest.RefOf(done), mailboxtest.Completed(""))
	for i, want := range []mailbox.State{mailbox.Dead, mailbox.Dead, mailbox.Done, mailbox.Dead} {
		d := h.MustShow(t, ids[i])
		if d.State != want || want == mailbox.Dead && d.LastFailure.Category != mailbox.CategoryExpired {
			t.Fatalf("%s is %s: %+v", ids[i], d.State, d.LastFailure)
		}
	}
	// Retried by a person its time to live runs anew.
	if err := h.Box.Retry(ctx, ids[0]); err != nil {
		t.Fatal(err)
	}
	h.Advance(4 * time.Second)
	if d := h.MustClaim(t, a, 0); d.ID != ids[0] {
		t.Fatal(d.ID)
	}
}

// A time to live follows the wall clock: a step forward ends it, a step back does not
// end it twice.
func TestLapse_FollowsTheWallClock(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := context.Background()
	s, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h.Step(-time.Hour)
	h.Advance(time.Hour)
	if err := h.Box.LapseDue(ctx); err != nil {
		t.Fatal(err)
	}
	if st := h.MustShow(t, s.ID).State; st != mailbox.New {
		t.Fatal(st)
	}
	h.Step(time.Hour)
	for range 2 {
		if err := h.Box.LapseDue(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if st := h.MustShow(t, s.ID).State; st != mailbox.Dead {
		t.Fatal(st)
	}
}
