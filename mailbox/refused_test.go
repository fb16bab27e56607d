package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Mistake 1: that a stale worker was refused is in the journal, once for each
// verb however often it asks.
func TestSettle_StaleIsInTheJournalOnce(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "body")
	old := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.Advance(10 * time.Second)
	if _, err := h.Box.SweepExpired(ctx); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Second)
	h.MustClaim(t, b, id)
	for range 3 {
		refused(t, "complete", settle(h, a, old, mailboxtest.Completed("stale")), refusal.FencingTokenStale)
		refused(t, "fail", settle(h, a, old, mailboxtest.Failed("stale")), refusal.FencingTokenStale)
	}
	verbs := map[string]int{}
	for n := 0; n < 2; {
		evs, more, err := h.Box.Events(ctx, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		clear(verbs)
		for _, ev := range evs {
			if ev.Kind == protocol.EventRefused {
				n++
				verbs[ev.Text]++
				if ev.Message != id || ev.Process != a.Process || ev.Token != old.Token || ev.Category != string(refusal.FencingTokenStale) {
					t.Errorf("the event says %+v", ev)
				}
			}
		}
		if n < 2 {
			<-more
		}
	}
	for text, n := range verbs {
		if n != 1 {
			t.Errorf("%q is in the journal %d times", text, n)
		}
	}
	if len(verbs) != 2 {
		t.Errorf("the journal has %v, want one entry for complete and one for fail", verbs)
	}
}
