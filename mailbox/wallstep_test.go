package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
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
	h.Step(-3 * time.Hour)
	h.Box.WallStepped()
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatalf("delivered again: %v, %v", got, err)
	}
	cancel()
	<-ran
}
