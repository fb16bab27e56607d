package mailbox_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// A completion that commits before a cancelled attempt is ended wins. Let endTx
// turn it into the cancelling and this fails.
func TestCancel_CompletionWins(t *testing.T) {
	h, a, _ := house(t)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	if c, err := h.Box.Cancel(t.Context(), ref.ID); err != nil || !c.Running {
		t.Fatalf("%+v, %v", c, err)
	}
	if s := h.MustSettle(t, a, ref, mailboxtest.Completed("done")); s.State != mailbox.Done {
		t.Fatalf("%s", s.State)
	}
}

// A worker that gives a cancelled message back says nothing of why; who reads the receipt is
// told. Leave its reason empty and this fails.
func TestCancel_TheReasonIsSaid(t *testing.T) {
	h, a, _ := house(t)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	if c, err := h.Box.Cancel(t.Context(), ref.ID); err != nil || !c.Running {
		t.Fatalf("%+v, %v", c, err)
	}
	if s := h.MustSettle(t, a, ref, mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased, ByWorker: true}); s.State != mailbox.Dead {
		t.Fatalf("%s", s.State)
	}
	d := h.MustShow(t, ref.ID)
	if d.LastFailure == nil || d.LastFailure.Reason != "cancelled by an operator" || d.Receipts[0].Reason != d.LastFailure.Reason {
		t.Errorf("%+v, %+v", d.LastFailure, d.Receipts)
	}
}

// P4.3, P2.6: what a process held ends together with its lease: if it lives on all
// the same it claims nothing more. Leave the lease on record in Leave and this
// fails.
func TestLeave_ReleasesTheLease(t *testing.T) {
	h, a, _ := house(t)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	ended, err := h.Box.Leave(t.Context(), a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{})
	if err != nil || len(ended) != 1 || ended[0] != ref {
		t.Fatalf("%v, %v", ended, err)
	}
	_, err = h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{})
	refused(t, "claim after leaving", err, refusal.ActorLeaseLost)
	refused(t, "settle after leaving", settle(h, a, ref, mailboxtest.Completed("late")), refusal.ActorLeaseLost)
}
