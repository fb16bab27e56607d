package mailbox_test

import (
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// What is counted is what was committed, each once: refused and repeated requests,
// and sends that stay staged, count for nothing. Count in the transaction's function
// instead of after its commit and the repeated ones fail this.
func TestTallies_CountWhatWasCommitted(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("a"), mailboxtest.Actor("b"))
	ctx := t.Context()
	first := h.MustSend(t, "a", "1")
	h.MustSend(t, "a", "2")
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "a", Key: "k", Body: []byte("3")}); err != nil {
		t.Fatal(err)
	}
	if sent, err := h.Box.Send(ctx, mailbox.Outgoing{To: "a", Key: "k", Body: []byte("3")}); err != nil || !sent.Duplicate {
		t.Fatalf("the same again: %+v, %v", sent, err)
	}
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "nobody"}); err == nil {
		t.Fatal("sent to nobody")
	}

	worker := h.MustBegin(t, "a", 1)
	d := h.MustClaim(t, worker, first)
	h.MustClaim(t, worker, first) // the same claim, answered again
	h.MustStage(t, worker, mailboxtest.RefOf(d), "b", "out")
	if got := h.Box.Tallies()["b"].Sent; got != 0 {
		t.Errorf("a staged send counts already: %d", got)
	}
	h.MustSettle(t, worker, mailboxtest.RefOf(d), mailboxtest.Completed("r"))
	h.MustSettle(t, worker, mailboxtest.RefOf(d), mailboxtest.Completed("r")) // repeated
	again := h.MustClaim(t, worker, 0)
	h.MustSettle(t, worker, mailboxtest.RefOf(again), mailboxtest.Failed("no"))

	a, b := h.Box.Tallies()["a"], h.Box.Tallies()["b"]
	if a.Sent != 3 || a.Claims != 2 || b.Sent != 1 {
		t.Errorf("sent %d to a, want 3; %d claims, want 2; sent %d to b, want 1", a.Sent, a.Claims, b.Sent)
	}
	for category, n := range a.Ends {
		want := uint64(0)
		if category == mailbox.CategoryCompleted || category == mailbox.CategoryFailedByWorker {
			want = 1
		}
		if n != want {
			t.Errorf("%d attempts ended as %s, want %d", n, category, want)
		}
	}
}

// The age of an inbox is that of its oldest ready message: one that waits for its
// time, or is held, is not late.
func TestOldest_IsTheOldestThatIsReady(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("a"), mailboxtest.Actor("b"))
	ctx := t.Context()
	oldest := func() (time.Time, bool) {
		t.Helper()
		all, err := h.Box.Oldest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := all["a"]
		return at, ok
	}
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "a", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if at, ok := oldest(); ok {
		t.Errorf("a delayed message counts as ready, of %v", at)
	}
	h.Advance(time.Minute)
	low := h.MustSend(t, "a", "low")
	sentAt := h.Now()
	h.Advance(time.Minute)
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "a", Priority: 5}); err != nil {
		t.Fatal(err)
	}
	if at, ok := oldest(); !ok || !at.Equal(sentAt) {
		t.Errorf("oldest is of %v, %v; want %v: priority has no part in it", at, ok, sentAt)
	}
	h.MustClaim(t, h.MustBegin(t, "a", 1), low)
	if at, ok := oldest(); ok && at.Equal(sentAt) {
		t.Error("a held message counts as ready")
	}
}
