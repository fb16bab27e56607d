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

// P4.7: whichever way an attempt ends whose outcome its worker did not report, the message
// waits for a person where its actor parks, and is tried again where it does not, until
// its last charged attempt (P3.7, P3.9); each with its event. A stop is not charged (P6). What
// the worker reported itself parks nothing. Leave out Park in a case of follow and this
// fails.
func TestEnd_WhatWasNotReportedParks(t *testing.T) {
	ended := func(o mailbox.Outcome) func(*testing.T, *mailboxtest.House, fence.Holder, mailbox.Ref) {
		return func(t *testing.T, h *mailboxtest.House, a fence.Holder, _ mailbox.Ref) {
			if _, err := h.Box.Leave(t.Context(), a, func(mailbox.Ref) mailbox.Outcome { return o }, mailbox.Event{Kind: "exited"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	unreported := func(c mailbox.Category) mailbox.Outcome {
		return mailbox.Outcome{Verdict: mailbox.Unreported, Category: c, ExitCode: -1}
	}
	for _, c := range []struct {
		category mailbox.Category
		end      func(*testing.T, *mailboxtest.House, fence.Holder, mailbox.Ref)
		reported bool
		free     bool // not charged
	}{
		{category: mailbox.CategoryWorkerLost, end: ended(mailboxtest.Lost("KILL"))},
		{category: mailbox.CategoryTimeout, end: ended(unreported(mailbox.CategoryTimeout))},
		{category: mailbox.CategoryNoProgress, end: ended(unreported(mailbox.CategoryNoProgress))},
		{category: mailbox.CategoryInterrupted, free: true,
			end: ended(mailbox.Outcome{Verdict: mailbox.Interrupt, Category: mailbox.CategoryInterrupted, ExitCode: -1})},
		{category: mailbox.CategoryClaimExpired, end: func(t *testing.T, h *mailboxtest.House, _ fence.Holder, _ mailbox.Ref) {
			h.Advance(time.Minute)
			if swept, err := h.Box.SweepExpired(t.Context()); err != nil || len(swept) != 1 {
				t.Fatal(swept, err)
			}
		}},
		{category: mailbox.CategoryStaleCompletion, end: func(t *testing.T, h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) {
			h.Advance(time.Minute)
			_, err := h.Box.EndTask(t.Context(), a, ref, mailboxtest.Completed("too late"))
			refused(t, "a completion when the claim was no longer current", err, refusal.LeaseExpired)
		}},
		{category: mailboxtest.Failed("").Category, reported: true, end: func(t *testing.T, h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) {
			h.MustSettle(t, a, ref, mailboxtest.Failed("no"))
		}},
	} {
		for _, park := range []bool{false, true} {
			for _, most := range []int{1, 2} {
				actor := mailboxtest.Actor("work")
				actor.Park, actor.Retry.MaxAttempts = park, most
				h := mailboxtest.Open(t, actor)
				a := h.MustBegin(t, "work", 1)
				id := h.MustSend(t, "work", "")
				c.end(t, h, a, mailboxtest.RefOf(h.MustClaim(t, a, id)))

				state, kind := mailbox.New, protocol.EventFailed
				switch {
				case park && !c.reported:
					state, kind = mailbox.Parked, protocol.EventParked
				case c.free:
					kind = protocol.EventReleased
				case most == 1:
					state, kind = mailbox.Dead, protocol.EventDead
				}
				charged := 1
				if c.free {
					charged = 0
				}
				d := h.MustShow(t, id)
				if d.State != state || d.Attempts != charged || len(d.Receipts) != 1 || d.Receipts[0].Category != c.category || d.Receipts[0].Counted == c.free {
					t.Errorf("%s, park %v, %d attempts: %s, %d charged, %+v", c.category, park, most, d.State, d.Attempts, d.Receipts)
				}
				told := 0
				for _, ev := range mustEvents(t, h) {
					if ev.Message == id && ev.Kind == kind && ev.Category == string(c.category) {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%s, park %v, %d attempts: %d events %s", c.category, park, most, told, kind)
				}
			}
		}
	}
}
