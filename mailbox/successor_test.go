package mailbox_test

import (
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func lost(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }

// P1.6, P4.3: a lease is passed on under a greater token, with the end of what its last
// process held, by one transaction: also where that is more than one has room for. Leave
// out the release, or the last step, and this fails.
func TestLeaveTo_PassesTheLeaseOn(t *testing.T) {
	h, a, _ := house(t)
	var refs []mailbox.Ref
	for range 10 {
		refs = append(refs, mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", ""))))
	}
	p := fence.NewProcess()
	lease, err := h.Box.LeaveTo(t.Context(), a, lost, mailbox.Event{Kind: protocol.EventExited},
		mailbox.Successor{Process: p, TTL: time.Minute, Event: mailbox.Event{Kind: protocol.EventStarted}})
	if err != nil || lease.Process != p || lease.Slot != a.Slot || lease.Token <= a.Token {
		t.Fatalf("%+v, %v", lease, err)
	}
	refused(t, "settle after it", settle(h, a, refs[0], mailboxtest.Completed("late")), refusal.ActorLeaseLost)
	for _, ref := range refs {
		if d := h.MustShow(t, ref.ID); d.Claim != nil || len(d.Receipts) != 1 {
			t.Errorf("%s: %+v, %d receipts", d.State, d.Claim, len(d.Receipts))
		}
	}
	if _, err := h.Box.Claim(t.Context(), lease.Holder(), mailbox.ClaimRequest{}); err != nil {
		t.Errorf("claim of the successor: %v", err)
	}
	events, err := h.Box.LastEvents(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var seen []protocol.EventKind
	for _, e := range events {
		if e.Kind == protocol.EventExited && e.Process == a.Process || e.Kind == protocol.EventStarted && e.Token == lease.Token {
			seen = append(seen, e.Kind)
		}
	}
	if len(seen) != 2 || seen[0] != protocol.EventExited && seen[1] != protocol.EventExited {
		t.Errorf("%q", seen)
	}
}

// A lease that cannot be passed on stays with its holder, and so does what it holds:
// nothing of both is stored. Give up the error of also and this fails.
func TestLeaveTo_StoresAllOrNothing(t *testing.T) {
	h, a, _ := house(t)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	_, err := h.Box.LeaveTo(t.Context(), a, lost, mailbox.Event{Kind: protocol.EventExited}, mailbox.Successor{Process: fence.NewProcess()})
	refused(t, "a lease without a ttl", err, refusal.BadRequest)
	if s := h.MustSettle(t, a, ref, mailboxtest.Completed("done")); s.State != mailbox.Done {
		t.Errorf("%s", s.State)
	}
}
