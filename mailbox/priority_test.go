package mailbox_test

import (
	"testing"

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
