package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
)

// Mistakes 7 and 8, report 4.7 #72: the wall clock is set forward beyond a delayed
// message's time. It is delivered once, then and not when the timer would have
// rung. Remove stepped from Run and this hangs.
func TestRun_DelayedMessagesFollowTheWallClock(t *testing.T) {
	h, a, _ := house(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
