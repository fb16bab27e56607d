package mailbox_test

import (
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// P3.9: an expired claim that was the last attempt is not taken over: the message
// is DEAD after exactly max_attempts charged starts, whoever comes before the
// sweep. Remove the look at what the end made of it in claimTx and this fails.
func TestClaim_TakeoverOfTheLastAttempt(t *testing.T) {
	once := mailboxtest.Actor("work")
	once.Retry.MaxAttempts = 1
	h := mailboxtest.Open(t, once)
	a, b := h.MustBegin(t, "work", 1), h.MustBegin(t, "work", 2)
	id := h.MustSend(t, "work", "")
	h.MustClaim(t, a, id)
	h.Advance(time.Minute)
	_, err := h.Box.Claim(t.Context(), b, mailbox.ClaimRequest{ID: id})
	refused(t, "take over the last attempt", err, refusal.MessageNotClaimable)
	if _, err := h.Box.SweepExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := h.MustShow(t, id); d.State != mailbox.Dead || d.Attempt != 1 || len(d.Receipts) != 1 {
		t.Fatalf("%s after %d starts with %d receipts", d.State, d.Attempt, len(d.Receipts))
	}
}

// P8: a staged send takes its place in the recipient's inbox when it is staged.
// Leave the staged out of the count in sendTx and this fails.
func TestStage_ReservesAPlace(t *testing.T) {
	full := mailboxtest.Actor("other")
	full.Limit = 1
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), full)
	a := h.MustBegin(t, "work", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	if _, err := h.Box.Stage(t.Context(), a, ref, mailbox.Outgoing{To: "other"}); err != nil {
		t.Fatal(err)
	}
	_, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "other"})
	refused(t, "send to a place that is taken", err, refusal.InboxFull)
	if _, err := h.Box.Settle(t.Context(), a, ref, mailbox.Outcome{Verdict: mailbox.Complete}, nil); err != nil {
		t.Fatal(err)
	}
}
