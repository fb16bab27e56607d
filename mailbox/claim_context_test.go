package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// A claim whose caller has gone reads no further blocks of a long inbox. Leave out the
// look at ctx in ready and this fails.
func TestClaim_ReadsNoMoreBlocksForWhoHasGone(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	for range 40 {
		h.MustSend(t, "work", "")
	}
	h.Reopen(t)
	a := h.MustBegin(t, "work", 1)
	unread := h.Box.Unread()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := h.Box.Claim(gone, a, mailbox.ClaimRequest{}); err != context.Canceled || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if left := h.Box.Unread(); left != unread || unread < 10 {
		t.Errorf("%d blocks of %d are unread", left, unread)
	}
}

// A claim that has got messages does not wait for more: it counts with those that wait only
// where it found none. Keep idle after the first grant, and this fails.
func TestClaim_DoesNotWaitForMore(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	const sent = 13 // more than one transaction grants
	for range sent {
		h.MustSend(t, "work", "")
	}
	got, err := h.Box.Claim(t.Context(), h.MustBegin(t, "work", 1), mailbox.ClaimRequest{Max: sent + 1, Wait: -1,
		Waits: func() (context.Context, error) {
			t.Error("it began to wait")
			return t.Context(), nil
		}})
	if err != nil || len(got) != sent {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// A claim that finds a message which cannot be claimed after all, here one whose time to
// live is over and which no sweep has ended yet, waits for the next one as any claim
// waits: no longer than it was told to, and no longer than its connection lasts. Have
// Claim not ask idle again where it has got nothing and this fails: such a claim had no
// end, and held up the end of its supervisor.
func TestClaim_WaitsAsLongAsItMayAfterAStaleEntry(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	a := h.MustBegin(t, "work", 1)
	if _, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	waited := false
	// So that a claim without an end is told as one.
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Wait: time.Hour, Waits: func() (context.Context, error) {
		waited = true
		return over, nil
	}})
	if !waited || len(got) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v; it waited within the context of its connection: %v", got, err, waited)
	}
}
