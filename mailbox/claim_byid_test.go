package mailbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A hooked store does something right before the next write, once.
type hooked struct {
	store.Store
	before func()
}

func (s *hooked) Update(ctx context.Context, fn func(store.Tx) error) error {
	if do := s.before; do != nil {
		s.before = nil
		do() // which may set the next
	}
	return s.Store.Update(ctx, fn)
}

// P3.3, P2.3: while an actor is paused, or after a reload has removed it, none of its
// messages is handed out, also to who asks for it by id; but what a process holds already
// it gets back by id. Leave heldBack out of a case in claimTx, or put it before the
// holder's own, and this fails.
func TestClaim_ByIDWhileHeldBack(t *testing.T) {
	for _, removed := range []bool{false, true} {
		h, a, b := house(t)
		ctx := t.Context()
		held, expires := h.MustClaim(t, a, h.MustSend(t, "work", "")), h.MustSend(t, "work", "")
		waits := h.MustSend(t, "work", "")
		holdBack := func() error { return h.Box.SetPaused(ctx, "work", true) }
		if removed {
			holdBack = func() error { return h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("other")}) }
		}
		h.MustClaim(t, b, expires)
		if err := holdBack(); err != nil {
			t.Fatal(err)
		}
		again, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: held.ID})
		if err != nil || len(again) != 1 || again[0].Token != held.Token || !again[0].Again {
			t.Errorf("removed %v: what it holds: %+v, %v", removed, again, err)
		}
		_, err = h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: waits})
		refused(t, "a new one", err, refusal.MessageNotClaimable)
		h.Advance(10 * time.Second)
		_, err = h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: expires})
		refused(t, "to take an expired one over", err, refusal.MessageNotClaimable)
		if d := h.MustShow(t, expires); d.State != mailbox.Claimed || len(d.Receipts) != 0 {
			t.Errorf("removed %v: %s, %+v", removed, d.State, d.Receipts)
		}
	}
}

// P3.11: the index is a hint. A message that was taken out of it right before its actor is
// paused, or removed, is not claimed, and waits there again afterwards. Leave heldBack out of
// the case NEW in claimTx and this fails.
func TestClaim_HeldBackMeanwhile(t *testing.T) {
	for _, removed := range []bool{false, true} {
		actors := []mailbox.Actor{mailboxtest.Actor("work")}
		hook := &hooked{}
		h := mailboxtest.New(mailboxtest.Dir(t))
		h.Wrap = func(s store.Store) store.Store { hook.Store = s; return hook }
		h.MustOpen(t)
		t.Cleanup(func() { h.Check(t) })
		if err := h.Box.SetActors(t.Context(), actors); err != nil {
			t.Fatal(err)
		}
		a := h.MustBegin(t, "work", 1)
		id := h.MustSend(t, "work", "")
		change := func(held bool) error { return h.Box.SetPaused(t.Context(), "work", held) }
		if removed {
			change = func(held bool) error {
				if held {
					return h.Box.SetActors(t.Context(), []mailbox.Actor{mailboxtest.Actor("other")})
				}
				return h.Box.SetActors(t.Context(), actors)
			}
		}
		var changed error
		hook.before = func() { changed = change(true) }
		got, err := h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{})
		if err != nil || changed != nil || len(got) != 0 {
			t.Fatalf("removed %v: %+v, %v, %v", removed, got, err, changed)
		}
		if err := change(false); err != nil {
			t.Fatal(err)
		}
		if d := h.MustClaim(t, a, 0); d.ID != id {
			t.Fatalf("removed %v: %s", removed, d.ID)
		}
	}
}

// A message whose turn in its group has not come is not to be had by its id either: not
// while one is worked on, not while an earlier one waits, and not as the takeover of an
// expired claim before an earlier one that a person has put back. Leave the look at the group out of
// waitsTx, or the second call of it out of claimTx, and this fails.
func TestClaim_ByIDInItsTurn(t *testing.T) {
	h, a, b := house(t)
	ctx := t.Context()
	first, second := grouped(t, h, "g", 0), grouped(t, h, "g", 0)
	_, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: second})
	refused(t, "behind one that waits", err, refusal.MessageNotClaimable)
	running := h.MustClaim(t, a, first)
	_, err = h.Box.Claim(ctx, b, mailbox.ClaimRequest{ID: second})
	refused(t, "behind one that runs", err, refusal.MessageNotClaimable)
	h.MustSettle(t, a, mailboxtest.RefOf(running), mailbox.Outcome{Verdict: mailbox.Kill, Category: mailbox.CategoryBadMessage, ExitCode: -1})
	h.MustClaim(t, a, second)
	if err := h.Box.Retry(ctx, first); err != nil {
		t.Fatal(err)
	}
	h.Advance(10 * time.Second)
	_, err = h.Box.Claim(ctx, b, mailbox.ClaimRequest{ID: second})
	refused(t, "expired, behind one that was put back", err, refusal.MessageNotClaimable)
	if d := h.MustShow(t, second); d.State != mailbox.Claimed || len(d.Receipts) != 0 {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 1 {
		t.Fatal(swept, err)
	}
	if d := h.MustClaim(t, b, 0); d.ID != first {
		t.Fatalf("%s came next", d.ID)
	}
}

// P8: an expired claim with staged sends is not taken over before the sweep has ended it,
// which removes them with it: they would be nobody's. Leave the look at what is left to do
// out of claimTx and this fails.
func TestClaim_ByIDBesideStagedSends(t *testing.T) {
	h, a, b := house(t)
	ctx := t.Context()
	id := h.MustSend(t, "work", "")
	h.MustStage(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), "other", "")
	h.Advance(10 * time.Second)
	_, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{ID: id})
	refused(t, "before the sweep", err, refusal.MessageNotClaimable)
	if _, err := h.Box.SweepExpired(ctx); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
	h.MustSettle(t, b, mailboxtest.RefOf(h.MustClaim(t, b, id)), mailboxtest.Completed(""))
	if c, err := h.Box.Counts(ctx, "other"); err != nil || c != (mailbox.Counts{}) {
		t.Fatalf("%+v, %v", c, err)
	}
}

// P3.6, P8: a completion that is repeated on another connection while the first is under
// way waits for it, and adds nothing: its sends would become visible beside those of the
// first. Take the lock out of Settle and this fails.
func TestSettle_RepeatedBesideTheFirst(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		hook := &hooked{}
		h := mailboxtest.New(dir)
		h.Wrap = func(s store.Store) store.Store { hook.Store = s; return hook }
		h.MustOpen(t)
		t.Cleanup(func() { h.Check(t) })
		if err := h.Box.SetActors(t.Context(), []mailbox.Actor{mailboxtest.Actor("work"), mailboxtest.Actor("other")}); err != nil {
			t.Fatal(err)
		}
		a := h.MustBegin(t, "work", 1)
		ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
		type answer struct {
			mailbox.Settled
			err error
		}
		complete := func() answer {
			got, err := h.Box.Settle(t.Context(), a, ref, mailboxtest.Completed(""), []mailbox.Outgoing{{To: "other"}})
			return answer{got, err}
		}
		second := make(chan answer, 1)
		// The first write is that which stages the send; before the next, which ends the
		// claim, the repeat comes, and gets as far as it can.
		hook.before = func() {
			hook.before = func() {
				go func() { second <- complete() }()
				synctest.Wait()
			}
		}
		if got := complete(); got.err != nil || got.Repeated || got.State != mailbox.Done || len(got.Visible) != 1 {
			t.Errorf("the first: %+v", got)
		}
		if got := <-second; got.err != nil || !got.Repeated || got.State != mailbox.Done {
			t.Errorf("the repeat: %+v", got)
		}
		if c, err := h.Box.Counts(t.Context(), "other"); err != nil || c != (mailbox.Counts{New: 1}) {
			t.Errorf("sent were %+v, %v", c, err)
		}
	})
}

// P3.3: a request repeated by the same process gets its own claims back, and not those of
// another request. Compare no request in heldBy and this fails.
func TestClaim_RequestsAreApart(t *testing.T) {
	h, a, _ := house(t)
	first, second := h.MustSend(t, "work", ""), h.MustSend(t, "work", "")
	for _, c := range []struct {
		request string
		want    mailbox.ID
	}{{"r1", first}, {"r2", second}, {"r1", first}, {"r2", second}} {
		got, err := h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{Request: c.request})
		if err != nil || len(got) != 1 || got[0].ID != c.want {
			t.Fatalf("%s: %+v, %v; want %s", c.request, got, err, c.want)
		}
	}
}
