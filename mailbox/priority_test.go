package mailbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// A low priority waits long, and not for ever: while higher ones keep coming, 64 in a row
// go before an older one, and then that one goes. Otherwise the highest is first, and the
// rule holds over restarts, in which the index is read anew. Remove mostPassed and this
// fails.
func TestClaim_LowPrioritiesAreNotStarved(t *testing.T) {
	actor := mailboxtest.Actor("work")
	h := mailboxtest.Open(t, actor)
	send := func(priority int) mailbox.ID {
		t.Helper()
		s, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Priority: priority})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	lowest, low, ordinary := send(-100), send(-5), send(0)
	for slot := 1; slot <= 2; slot++ {
		if slot == 2 {
			h.Reopen(t)
			lowest, low, ordinary = ordinary, send(-100), send(0) // what is left, and more
		}
		a := h.MustBegin(t, "work", slot)
		waiting := []mailbox.ID{send(50)}
		for n, oldest := 0, []mailbox.ID{lowest, low}; len(oldest) > 0; n++ {
			waiting = append(waiting, send(50)) // as many come as go
			got := h.MustClaim(t, a, 0)
			h.MustSettle(t, a, mailboxtest.RefOf(got), mailboxtest.Completed(""))
			switch {
			case n%65 == 64:
				if got.ID != oldest[0] {
					t.Fatalf("%s is the 65th, want the oldest, %s", got.ID, oldest[0])
				}
				oldest = oldest[1:]
			case got.ID != waiting[0]:
				t.Fatalf("%s is number %d, want the first of the highest priority, %s", got.ID, n+1, waiting[0])
			default:
				waiting = waiting[1:]
			}
		}
		for range waiting {
			h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, 0)), mailboxtest.Completed(""))
		}
	}
	if got := h.MustClaim(t, h.MustBegin(t, "work", 3), 0); got.ID != ordinary {
		t.Errorf("%s is left, want %s", got.ID, ordinary)
	}
}

// What is cancelled, or lapses, while it waits has no turn: one of low priority that waits
// behind such goes after 64 of higher priority all the same, however many are claimed at
// once, and one of high priority does not wait because others were cancelled. Let giveBack
// not tell untake, or ready go on behind a turn, and this fails.
func TestClaim_WhatWaitsNoLongerHasNoTurn(t *testing.T) {
	for _, most := range []int{1, 12} {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		a := h.MustBegin(t, "work", 1)
		send := func(m mailbox.Outgoing) mailbox.ID {
			t.Helper()
			m.To = "work"
			s, err := h.Box.Send(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			return s.ID
		}
		cancelled := func(m mailbox.Outgoing) {
			t.Helper()
			if _, err := h.Box.Cancel(t.Context(), send(m)); err != nil {
				t.Fatal(err)
			}
		}
		claim := func() []mailbox.Delivery {
			t.Helper()
			got, err := h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{Max: most})
			if err != nil || len(got) == 0 {
				t.Fatal(got, err)
			}
			for _, d := range got {
				h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
			}
			return got
		}

		for range 10 {
			cancelled(mailbox.Outgoing{})
			send(mailbox.Outgoing{TTL: time.Second})
		}
		low := send(mailbox.Outgoing{})
		for range 100 {
			send(mailbox.Outgoing{Priority: 50})
		}
		h.Advance(time.Second)
		if err := h.Box.LapseDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []mailbox.ID
		for len(order) < 101 {
			for _, d := range claim() {
				order = append(order, d.ID)
			}
		}
		if at := slices.Index(order, low); at != 64 {
			t.Errorf("claimed by %d, the low one is number %d, want 65", most, at+1)
		}

		send(mailbox.Outgoing{})
		for range 64 {
			cancelled(mailbox.Outgoing{Priority: 50})
		}
		high := send(mailbox.Outgoing{Priority: 50})
		if got := claim(); got[0].ID != high {
			t.Errorf("claimed by %d, %s is first, want the one of high priority, %s", most, got[0].ID, high)
		}
	}
}
