package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// Mistakes 7 and 8, report 4.7 #72: the wall clock is set forward beyond a delayed
// message's time. It is delivered once, then and not when the timer would have
// rung. Remove stepped from Run and this hangs.
func TestRun_DelayedMessagesFollowTheWallClock(t *testing.T) {
	h, a, _ := house(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- h.Box.Run(ctx) }()
	sent, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h.Step(2 * time.Hour)
	h.Box.WallStepped()
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Wait: -1})
	if err != nil || len(got) != 1 || got[0].ID != sent.ID {
		t.Fatalf("claimed %v, %v", got, err)
	}
	// Set back, it does not come again, and another one waits for the time that it
	// was given, by the clock as it is then. Leave the due time out of a claim's
	// judgement or of the index and this fails.
	later, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h.Step(-3 * time.Hour)
	h.Box.WallStepped()
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatalf("delivered again, or before its time: %v, %v", got, err)
	}
	if _, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: later.ID}); !refusal.Has(err, refusal.MessageNotClaimable) {
		t.Fatalf("before its time, by its id: %v", err)
	}
	h.Step(4*time.Hour + time.Second)
	h.Box.WallStepped()
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Wait: -1}); err != nil || len(got) != 1 || got[0].ID != later.ID {
		t.Fatalf("claimed %v, %v", got, err)
	}
	cancel()
	<-ran
}

// Mistake 7, data that goes with a wrong clock: set a century ahead for a moment, it has
// nothing removed for its age, neither messages nor events. If it is still so ten minutes
// later it is taken for right. Leave rest out of purgeDue and this fails.
func TestWallStep_RemovesNothingAtOnce(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Retention = mailbox.Retention{Done: 24 * time.Hour, Events: 24 * time.Hour}
	h := mailboxtest.Open(t, actor)
	a, ctx := h.MustBegin(t, "work", 1), context.Background()
	id := h.MustSend(t, "work", "")
	h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Completed(""))
	events := len(mustEvents(t, h))
	look := func(when string, kept bool) {
		t.Helper()
		if _, err := h.Box.PurgeDue(ctx); err != nil {
			t.Fatal(err)
		}
		_, err := h.Box.Show(ctx, id)
		if refusal.Has(err, refusal.MessageMissing) == kept {
			t.Errorf("%s: kept %v: %v", when, !kept, err)
		}
		if n := len(mustEvents(t, h)); kept && n != events {
			t.Errorf("%s: %d events, want %d", when, n, events)
		}
	}
	century := 100 * 365 * 24 * time.Hour
	look("at the beginning", true)
	h.Step(century)
	look("a century on", true)
	h.Advance(9 * time.Minute)
	look("nine minutes later", true)
	h.Step(-century)
	look("set aright", true)
	h.Advance(time.Minute)
	look("set aright, and a minute later", true)
	h.Step(century)
	look("a century on again", true)
	h.Advance(10 * time.Minute)
	look("a century on for ten minutes", false)
}
