package mailbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

func refused(t testing.TB, doing string, err error, c refusal.Category) {
	t.Helper()
	if !refusal.Has(err, c) {
		t.Fatalf("%s: got %v, want %s", doing, err, c)
	}
}

// flat is everything in v, to be compared.
func flat(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func settle(h *mailboxtest.House, p fence.Holder, ref mailbox.Ref, o mailbox.Outcome) error {
	_, err := h.Box.Settle(context.Background(), p, ref, o, nil)
	return err
}

// house has one actor "work" (claims renewed by hand, 10 s), its two processes,
// and an actor "other".
func house(t *testing.T) (h *mailboxtest.House, a, b fence.Holder) {
	h = mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	return h, h.MustBegin(t, "work", 1), h.MustBegin(t, "work", 2)
}

// P2.5, P2.6, mistakes 1, 2 and 23: the fence is stolen in the middle of the work,
// and whatever the old holder asks is refused, again and again; nothing that it
// staged is seen, and the state is the new holder's. Remove the token comparison
// in currentTx and this fails.
func TestSettle_RefusesAStolenFence(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "body")
	old := mailboxtest.RefOf(h.MustClaim(t, a, id))
	child := h.MustStage(t, a, old, "other", "too early")
	h.Advance(10 * time.Second)
	if _, err := h.Box.SweepExpired(ctx); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Second)
	current := h.MustClaim(t, b, id)
	for range 3 {
		before := h.MustShow(t, id)
		for _, o := range []mailbox.Outcome{mailboxtest.Completed("stale"), mailboxtest.Failed("stale"), mailboxtest.Released()} {
			refused(t, "settle", settle(h, a, old, o), refusal.FencingTokenStale)
		}
		_, _, err := h.Box.Renew(ctx, a, old, new("progress"))
		refused(t, "renew", err, refusal.FencingTokenStale)
		refused(t, "check", h.Box.Check(ctx, a, old), refusal.FencingTokenStale)
		_, err = h.Box.Stage(ctx, a, old, mailbox.Outgoing{To: "other"})
		refused(t, "stage", err, refusal.FencingTokenStale)
		_, err = h.Box.Settle(ctx, a, old, mailboxtest.Completed("stale"), []mailbox.Outgoing{{To: "other"}})
		refused(t, "settle with sends", err, refusal.FencingTokenStale)
		if after := h.MustShow(t, id); flat(after) != flat(before) || after.Claim.Token != current.Token {
			t.Fatalf("the message changed: %+v", after)
		}
	}
	_, err := h.Box.Show(ctx, child)
	refused(t, "show what was staged", err, refusal.MessageMissing)
	h.MustSettle(t, b, mailboxtest.RefOf(current), mailboxtest.Completed("right"))
	if d := h.MustShow(t, id); string(d.Result) != "right" || len(d.Receipts) != 2 {
		t.Fatalf("%+v", d)
	}
	if c, _ := h.Box.Counts(ctx, "other"); c != (mailbox.Counts{}) {
		t.Fatalf("a stale holder left %+v", c)
	}
}

// P3: what is asked is judged in this order. Each case fails one check and all
// later ones; swap two checks in currentTx and this fails.
func TestCurrent_OrderOfChecks(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	id, foreign := h.MustSend(t, "work", ""), h.MustSend(t, "other", "")
	d := h.MustClaim(t, a, id)
	gone := a
	gone.Token++
	refused(t, "lease before message", h.Box.Check(ctx, gone, mailbox.Ref{ID: 999}), refusal.ActorLeaseLost)
	refused(t, "message before recipient", h.Box.Check(ctx, a, mailbox.Ref{ID: 999}), refusal.MessageMissing)
	refused(t, "recipient before token", h.Box.Check(ctx, a, mailbox.Ref{ID: foreign}), refusal.NotAddressee)
	refused(t, "recipient, a token of another message", h.Box.Check(ctx, a, mailbox.Ref{ID: foreign, Token: d.Token}), refusal.NotAddressee)
	refused(t, "no token", h.Box.Check(ctx, a, mailbox.Ref{ID: id}), refusal.FencingTokenStale)
	refused(t, "wrong token", h.Box.Check(ctx, a, mailbox.Ref{ID: id, Token: d.Token + 1}), refusal.FencingTokenStale)
	if err := h.Box.Check(ctx, a, mailboxtest.RefOf(d)); err != nil {
		t.Fatal(err)
	}
	h.Leases.Drop(a.Slot, a.Token)
	h.Advance(time.Hour)
	refused(t, "expired lease before message", h.Box.Check(ctx, a, mailbox.Ref{ID: 999}), refusal.LeaseExpired)
}

// P2.6, P3, P3.6: a send is judged by the fence before its recipient and its size are.
// So whoever lost the fence is told so, whatever it sends; and a completion whose answer
// was lost is a repeat, also where a reload has removed a recipient of its sends meanwhile.
// Only its form is judged before. Have fenceFirst return why and this fails.
func TestSend_IsJudgedByTheFenceFirst(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	sends := []mailbox.Outgoing{{To: "other", Body: []byte("child")}}
	if got, err := h.Box.Settle(ctx, a, ref, mailboxtest.Completed(""), sends); err != nil || len(got.Visible) != 1 {
		t.Fatal(got, err)
	}
	if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
		t.Fatal(err)
	}
	got, err := h.Box.Settle(ctx, a, ref, mailboxtest.Completed(""), sends)
	if err != nil || !got.Repeated || got.State != mailbox.Done {
		t.Fatalf("a repeat whose recipient has gone: %+v, %v", got, err)
	}
	_, err = h.Box.Settle(ctx, b, ref, mailboxtest.Completed(""), sends)
	refused(t, "another process, a recipient that has gone", err, refusal.FencingTokenStale)
	large := mailbox.Outgoing{To: "work", Body: make([]byte, mailbox.MaxBody+1)}
	_, err = h.Box.Stage(ctx, b, ref, large)
	refused(t, "another process, too large a body", err, refusal.FencingTokenStale)
	_, err = h.Box.Stage(ctx, b, ref, mailbox.Outgoing{To: "work", Priority: 1000})
	refused(t, "another process, a form that cannot be", err, refusal.BadRequest)
	gone := a
	gone.Token++
	_, err = h.Box.SendFenced(ctx, gone, mailbox.Outgoing{To: "nobody"})
	refused(t, "lost its lease, no such recipient", err, refusal.ActorLeaseLost)
	_, err = h.Box.SendFenced(ctx, a, mailbox.Outgoing{To: "nobody"})
	refused(t, "no such recipient", err, refusal.UnknownActor)
	_, err = h.Box.SendFenced(ctx, a, large)
	refused(t, "too large a body", err, refusal.MessageTooLarge)
}

// P2.6: a send of a worker that names no claim needs its lease all the same, in the
// transaction that sends. Leave the lease's check out of SendFenced and this fails.
func TestSendFenced_NeedsTheLease(t *testing.T) {
	h, a, _ := house(t)
	ctx := t.Context()
	m := mailbox.Outgoing{To: "other"}
	if _, err := h.Box.SendFenced(ctx, a, m); err != nil {
		t.Fatal(err)
	}
	before := a
	before.Token--
	_, err := h.Box.SendFenced(ctx, before, m)
	refused(t, "with another lease token", err, refusal.ActorLeaseLost)
	h.Leases.Drop(a.Slot, a.Token)
	h.Advance(time.Hour)
	_, err = h.Box.SendFenced(ctx, a, m)
	refused(t, "after its lease has expired", err, refusal.LeaseExpired)
	if err := h.Leases.Release(ctx, a); err != nil {
		t.Fatal(err)
	}
	_, err = h.Box.SendFenced(ctx, a, m)
	refused(t, "without a lease", err, refusal.ActorLeaseLost)
	if c, err := h.Box.Counts(ctx, "other"); err != nil || c.New != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
}

// P8: a completion whose sends are refused leaves what its claim had staged before as it
// was, also where one of the sends repeats that one by its key. Count duplicates among what
// stageAll placed and this fails. The refusal says which send it was.
func TestSettle_RefusedSendsLeaveWhatWasStaged(t *testing.T) {
	h, a, _ := house(t)
	ctx := t.Context()
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	m := mailbox.Outgoing{To: "other", Key: "k"}
	first, err := h.Box.Stage(ctx, a, ref, m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Box.Settle(ctx, a, ref, mailboxtest.Completed(""), []mailbox.Outgoing{m, {To: "other"}, {To: "nobody"}})
	refused(t, "complete with a send to nobody", err, refusal.UnknownActor)
	if said := refusal.Of(err).Message; !strings.HasPrefix(said, `send 3 of 3, to "nobody": `) {
		t.Errorf("it is not said which: %s", said)
	}
	got := h.MustSettle(t, a, ref, mailboxtest.Completed(""))
	if len(got.Visible) != 1 || got.Visible[0] != first.ID {
		t.Fatalf("visible: %v, staged was %s", got.Visible, first.ID)
	}
	if d := h.MustShow(t, first.ID); d.State != mailbox.New {
		t.Fatalf("it is %s", d.State)
	}
}

// P3.6: a fail that is repeated after its message has been claimed anew answers what it
// answered then, NEW, and not what has become of the message. Return the present state from
// ownSettleTx and this fails.
func TestSettle_RepeatedAfterTheNextClaim(t *testing.T) {
	h, a, b := house(t)
	id := h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.MustSettle(t, a, ref, mailboxtest.Failed(""))
	h.Advance(time.Minute)
	h.Box.PopDue()
	current := h.MustClaim(t, b, id)
	if got := h.MustSettle(t, a, ref, mailboxtest.Failed("")); !got.Repeated || got.State != mailbox.New {
		t.Errorf("while it is worked on: %+v", got)
	}
	h.MustSettle(t, b, mailboxtest.RefOf(current), mailboxtest.Completed(""))
	if got := h.MustSettle(t, a, ref, mailboxtest.Failed("")); !got.Repeated || got.State != mailbox.New {
		t.Errorf("after it was done: %+v", got)
	}
}

// P1.10, P3, mistake 6: an expired claim is refused, lease_expired, whether or not
// a sweep has run, and stays so when the message was cancelled meanwhile. Remove
// `expired` from the receipt and this fails.
func TestSettle_AnswerDoesNotDependOnTheSweep(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		h, a, _ := house(t)
		ctx := context.Background()
		id := h.MustSend(t, "work", "")
		ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
		if cancelled {
			if _, err := h.Box.Cancel(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		h.Advance(11 * time.Second)
		ask := func(when string) {
			refused(t, when, settle(h, a, ref, mailboxtest.Completed("")), refusal.LeaseExpired)
			_, _, err := h.Box.Renew(ctx, a, ref, nil)
			refused(t, when, err, refusal.LeaseExpired)
		}
		ask("before the sweep")
		if swept, err := h.Box.SweepExpired(ctx); len(swept) != 1 || err != nil {
			t.Fatal(swept, err)
		}
		ask("after the sweep")
	}
}

// P2.3, P3.2, P3.3, mistakes 18 and 19, report 4.5 #57: one holder; who holds it and asks again,
// by id or by repeating the request, gets the same back; after the expiry a new
// token and attempt.
func TestClaim_AgainIsIdempotentUntilItExpires(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "body")
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Request: "r1"})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	h.Advance(time.Second)
	first := got[0]
	first.Remaining -= time.Second // the deadline stays where it is
	again, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Request: "r1"})
	if err == nil && len(again) == 1 && again[0].Again {
		again[0].Again = false // that it is a repeat is all that differs
	}
	if err != nil || len(again) != 1 || fmt.Sprint(again[0]) != fmt.Sprint(first) {
		t.Fatalf("request again: %+v, want %+v, %v", again, first, err)
	}
	d := h.MustClaim(t, a, id)
	d.Again = false
	if fmt.Sprint(d) != fmt.Sprint(first) {
		t.Fatalf("id again: %+v, want %+v", d, first)
	}
	_, err = h.Box.Claim(ctx, b, mailbox.ClaimRequest{ID: id})
	refused(t, "another process", err, refusal.MessageNotClaimable)
	if got, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{Request: "r1"}); err != nil || len(got) != 0 {
		t.Fatalf("another process's request of the same name: %v, %v", got, err)
	}
	h.Advance(10 * time.Second)
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Request: "r1"}); err != nil || len(got) != 0 {
		t.Fatalf("an expired claim was given again: %+v, %v", got, err)
	}
	late := h.MustClaim(t, a, id)
	if late.Token <= first.Token || late.Attempt != 2 {
		t.Fatalf("after the expiry: %+v", late)
	}
	refused(t, "the old token", settle(h, a, mailboxtest.RefOf(first), mailboxtest.Completed("")), refusal.FencingTokenStale)
}

// P4.5: who loses a claim to another that claims it by id is told.
func TestClaim_TakeoverTellsTheOldHolder(t *testing.T) {
	h, a, b := house(t)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	var told []mailbox.Ref
	h.Box.OnLost(func(who fence.Holder, ref mailbox.Ref, _ string) {
		if who == a {
			told = append(told, ref)
		}
	})
	h.Advance(10 * time.Second)
	h.MustClaim(t, b, ref.ID)
	if len(told) != 1 || told[0] != ref {
		t.Fatalf("told %v", told)
	}
}

// P2.1, P3.1, mistake 29: a claim needs the current lease of a slot of the
// addressed actor; a token is bound to its message.
func TestClaim_NeedsTheLeaseOfTheAddressee(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	o := h.MustBegin(t, "other", 1)
	id, second := h.MustSend(t, "work", ""), h.MustSend(t, "work", "")
	_, err := h.Box.Claim(ctx, o, mailbox.ClaimRequest{ID: id})
	refused(t, "another actor", err, refusal.NotAddressee)
	forged := o
	forged.Slot.Actor = "work"
	_, err = h.Box.Claim(ctx, forged, mailbox.ClaimRequest{ID: id})
	refused(t, "a forged slot", err, refusal.ActorLeaseLost)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.MustClaim(t, a, second)
	refused(t, "the token of another message", settle(h, a, mailbox.Ref{ID: second, Token: ref.Token}, mailboxtest.Completed("")), refusal.FencingTokenStale)
}

// P3.2: of many contenders exactly one wins, by id.
func TestClaim_OneWins(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	var holders []fence.Holder
	for i := range 12 {
		holders = append(holders, h.MustBegin(t, "work", i+1))
	}
	for range 10 {
		id := h.MustSend(t, "work", "")
		var won atomic.Int32
		var all sync.WaitGroup
		for _, p := range holders {
			all.Go(func() {
				_, err := h.Box.Claim(context.Background(), p, mailbox.ClaimRequest{ID: id})
				switch {
				case err == nil:
					won.Add(1)
				case !refusal.Has(err, refusal.MessageNotClaimable):
					t.Errorf("claim: %v", err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d won", won.Load())
		}
	}
}

// P3.6, mistakes 15 and 16: a settle that is repeated succeeds and writes
// nothing; the first result stands; another verb is refused; a message that was
// cancelled meanwhile does not change what the verb was. Report 4.1 #18: a handler that
// failed its job and then threw hid the first cause with the second.
func TestSettle_Repeated(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	outcomes := map[string]mailbox.Outcome{"complete": mailboxtest.Completed("first"), "fail": mailboxtest.Failed("first"), "release": mailboxtest.Released()}
	for name, o := range outcomes {
		for _, cancelled := range []bool{false, true} {
			id := h.MustSend(t, "work", "")
			ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
			if cancelled {
				if _, err := h.Box.Cancel(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
			h.MustSettle(t, a, ref, o)
			before, events := flat(h.MustShow(t, id)), len(mustEvents(t, h))
			for verb, again := range outcomes {
				again.Result, again.Reason = []byte("second"), "second"
				got, err := h.Box.Settle(ctx, a, ref, again, nil)
				switch {
				case verb != name:
					refused(t, name+" then "+verb, err, refusal.AlreadySettled)
				case err != nil || !got.Repeated:
					t.Fatalf("%s again: %+v, %v", name, got, err)
				}
			}
			refused(t, "another process", settle(h, b, ref, o), refusal.FencingTokenStale)
			if after := flat(h.MustShow(t, id)); after != before || len(mustEvents(t, h)) != events {
				t.Fatalf("%s: a repeat changed %s to %s", name, before, after)
			}
			if d := h.MustShow(t, id); d.State == mailbox.New {
				if err := h.Box.Drop(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// mustEvents returns the journal without what was refused, which is written in
// the background.
func mustEvents(t *testing.T, h *mailboxtest.House) []mailbox.Event {
	t.Helper()
	evs, _, err := h.Box.Events(context.Background(), 0, 100000)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(evs, func(ev mailbox.Event) bool { return ev.Kind == protocol.EventRefused })
}

// P3.6: a receipt written by recovery is nobody's repeat.
func TestSettle_RecoverysReceiptIsNobodysRepeat(t *testing.T) {
	h, a, _ := house(t)
	id := h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	if _, err := h.Box.Cancel(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if done, err := h.Box.EndCancelled(context.Background(), a, ref); !done || err != nil {
		t.Fatal(done, err)
	}
	refused(t, "fail after that", settle(h, a, ref, mailboxtest.Failed("")), refusal.FencingTokenStale)
}

// Mistake 3, P3.9: complete and sweep at the very instant of the expiry: one of
// them wins, there is one receipt, and never DONE together with NEW.
func TestSweep_RacesComplete(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	rounds := 2000
	if testing.Short() {
		rounds = 100
	}
	swept, completed := 0, 0
	for i := range rounds {
		id := h.MustSend(t, "work", "")
		ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
		h.Advance(10*time.Second - 1)
		var all sync.WaitGroup
		var err error
		start := make(chan struct{})
		all.Go(func() {
			<-start
			for range i % 40 {
				runtime.Gosched()
			}
			h.Advance(1)
			_, _ = h.Box.SweepExpired(ctx)
		})
		all.Go(func() { <-start; err = settle(h, a, ref, mailboxtest.Completed("")) })
		close(start)
		all.Wait()
		if i%2 == 0 {
			_, _ = h.Box.SweepExpired(ctx)
		}
		d := h.MustShow(t, id)
		switch {
		case err == nil && d.State == mailbox.Done && len(d.Receipts) == 1 && d.Receipts[0].Status == mailbox.Completed:
			completed++
		case refusal.Has(err, refusal.LeaseExpired) && d.State == mailbox.New && len(d.Receipts) == 1:
			swept++
			if err := h.Box.Drop(ctx, id); err != nil {
				t.Fatal(err)
			}
		case refusal.Has(err, refusal.LeaseExpired) && d.State == mailbox.Claimed:
			swept++
			_, _ = h.Box.SweepExpired(ctx)
			_ = h.Box.Drop(ctx, id)
		default:
			t.Fatalf("complete said %v, the message is %s with %d receipts", err, d.State, len(d.Receipts))
		}
	}
	t.Logf("completed %d, swept %d", completed, swept)
	if holds, expiries := h.Box.IndexHolds(); holds != 0 || expiries != 0 {
		t.Fatalf("the index keeps %d holds and %d expiries of ended claims", holds, expiries)
	}
}

// Mistakes 4, 5 and 17: same state, another claim; a sweep's old list; a late
// release. Remove the token comparison in Sweep and this fails.
func TestSweep_LeavesALaterClaimAlone(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	old := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.MustSettle(t, a, old, mailboxtest.Released())
	current := mailboxtest.RefOf(h.MustClaim(t, b, id))
	refused(t, "complete although it is CLAIMED", settle(h, a, old, mailboxtest.Completed("")), refusal.AlreadySettled)
	h.Advance(10 * time.Second)
	if swept, err := h.Box.Sweep(ctx, old); swept || err != nil {
		t.Fatalf("an old list's sweep: %v, %v", swept, err)
	}
	h.Advance(-time.Second)
	if _, _, err := h.Box.Renew(ctx, b, current, nil); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Second)
	if swept, err := h.Box.Sweep(ctx, current); swept || err != nil {
		t.Fatalf("swept what was renewed: %v, %v", swept, err)
	}
	if err := h.Box.Check(ctx, b, current); err != nil {
		t.Fatal(err)
	}
}

// Mistake 26: a renewal never shortens. Mistake 27: nor does it go beyond the
// actor's timeout.
func TestRenew_NeverShortensNorOutlastsTheTimeout(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Timeout = 15 * time.Second
	h := mailboxtest.Open(t, actor)
	a := h.MustBegin(t, "work", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	h.Advance(9 * time.Second)
	if _, left, err := h.Box.Renew(context.Background(), a, ref, nil); err != nil || left != 6*time.Second {
		t.Fatalf("%s left, %v", left, err)
	}
	actor.ClaimTTL = time.Second
	if err := h.Box.SetActors(context.Background(), []mailbox.Actor{actor}); err != nil {
		t.Fatal(err)
	}
	if _, left, err := h.Box.Renew(context.Background(), a, ref, nil); err != nil || left != 6*time.Second {
		t.Fatalf("%s left, %v", left, err)
	}
	h.Advance(6 * time.Second)
	_, _, err := h.Box.Renew(context.Background(), a, ref, nil)
	refused(t, "renew at the timeout", err, refusal.LeaseExpired)
}

// Mistake 12: ids and tokens go on after everything is purged and reopened. Report 4.6
// #71: ids came again after two restarts, and a late delete removed a stranger's job.
func TestPurge_NumbersGoOn(t *testing.T) {
	h, a, _ := house(t)
	id := h.MustSend(t, "work", "")
	d := h.MustClaim(t, a, id)
	h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
	if n, err := h.Box.Purge(context.Background(), mailbox.Done, 0); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.Reopen(t)
	h.Reopen(t)
	_, _ = h.Box.Leave(context.Background(), a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("") }, mailbox.Event{})
	a = h.MustBegin(t, "work", 1)
	next := h.MustSend(t, "work", "")
	if next <= id || h.MustClaim(t, a, next).Token <= d.Token {
		t.Fatalf("%s after %s", next, id)
	}
	refused(t, "a late drop of the old id", h.Box.Drop(context.Background(), id), refusal.MessageMissing)
}

// P3.9: a message that kills its worker each time ends DEAD after exactly
// max_attempts charged starts, with the same backoff as a failure; P3.7. Report 4.2
// #33: a killed worker's job, with retries left, vanished.
func TestUnreported_EndsDeadAfterMaxAttempts(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	for attempt := 1; attempt <= 3; attempt++ {
		a := h.MustBegin(t, "work", 1)
		if d := h.MustClaim(t, a, 0); d.Attempt != attempt {
			t.Fatalf("attempt %d, want %d", d.Attempt, attempt)
		}
		if _, err := h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{Kind: "exited"}); err != nil {
			t.Fatal(err)
		}
		d := h.MustShow(t, id)
		if attempt < 3 && (d.State != mailbox.New || d.AvailableAt.Sub(h.Now()) != time.Second<<(attempt-1)) {
			t.Fatalf("after attempt %d: %s, available in %s", attempt, d.State, d.AvailableAt.Sub(h.Now()))
		}
		h.Advance(4 * time.Second)
		h.Box.PopDue()
	}
	d := h.MustShow(t, id)
	if d.State != mailbox.Dead || d.Attempts != 3 || len(d.Receipts) != 3 || d.Receipts[2].Signal != "KILL" {
		t.Fatalf("%+v", d)
	}
	if err := h.Box.Retry(ctx, id); err != nil {
		t.Fatal(err)
	}
	if d := h.MustClaim(t, h.MustBegin(t, "work", 1), 0); d.Attempt != 4 {
		t.Fatalf("after a retry by hand: attempt %d", d.Attempt)
	}
}

// P3.10: reads change nothing: not one byte of the store.
func TestReads_ChangeNothing(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.Advance(time.Hour)
	before := dump(t, h.Store)
	h.MustShow(t, id)
	_, _ = h.Box.List(ctx, mailbox.Filter{})
	_ = h.Box.Check(ctx, a, ref)
	_, _ = h.Box.Claims(ctx)
	_, _ = h.Box.Counts(ctx, "work")
	_, _ = h.Box.AllCounts(ctx)
	_, _ = h.Box.LastEvents(ctx, 5)
	_, _, _ = h.Box.Events(ctx, 0, 0)
	_ = h.Box.Held(a.Process)
	_, _ = h.Box.Leases().List(ctx)
	past, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = h.Box.Await(past, id)
	h.Verify(t)
	if !bytes.Equal(before, dump(t, h.Store)) {
		t.Fatal("a read changed the store")
	}
}

// dump is every key, value and counter of a store.
func dump(t testing.TB, st store.Store) []byte {
	t.Helper()
	var out []byte
	err := st.View(context.Background(), func(r store.Reader) error {
		out = nil
		for space := range 256 {
			r.Scan([]byte{byte(space)}, nil, func(k, v []byte) bool {
				out = fmt.Appendf(out, "%q=%q\n", k, v)
				return true
			})
			r.Sums([]byte{byte(space)}, func(k []byte, n int64) bool {
				out = fmt.Appendf(out, "%q=%d\n", k, n)
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// P8: completions never fail for their staged sends, however many there are, and
// what they publish is visible at once: also while its records are rewritten in
// steps (the transactions stay within the store's bounds). A failure publishes
// nothing, and gives places and keys back.
func TestStage_ManySends(t *testing.T) {
	for _, n := range []int{1, 12, 13, 100} {
		for _, complete := range []bool{true, false} {
			h, a, _ := house(t)
			ctx := context.Background()
			id := h.MustSend(t, "work", "")
			ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
			for i := range n {
				if _, err := h.Box.Stage(ctx, a, ref, mailbox.Outgoing{To: "other", Key: fmt.Sprint(i), Body: []byte(strings.Repeat("x", i))}); err != nil {
					t.Fatal(err)
				}
			}
			if c, _ := h.Box.Counts(ctx, "other"); c != (mailbox.Counts{Reserved: int64(n)}) {
				t.Fatalf("%+v", c)
			}
			o := mailboxtest.Failed("")
			want := mailbox.Counts{}
			if complete {
				o, want = mailboxtest.Completed(strings.Repeat("r", mailbox.MaxBody)), mailbox.Counts{New: int64(n)}
			}
			s := h.MustSettle(t, a, ref, o)
			if c, _ := h.Box.Counts(ctx, "other"); c != want || int64(len(s.Visible)) != want.New {
				t.Fatalf("%+v, want %+v; %d visible", c, want, len(s.Visible))
			}
			sent, err := h.Box.Send(ctx, mailbox.Outgoing{To: "other", Key: "0"})
			if complete {
				refused(t, "a key in use", err, refusal.DuplicateKey)
			} else if err != nil || sent.Duplicate {
				t.Fatalf("a key that was given back: %+v, %v", sent, err)
			}
		}
	}
}

// The transactions that end attempts stay within the store's bounds at their
// largest: a task that ends stale with staged sends, a process that leaves with
// many claims and staged sends, a message with many receipts that is dropped.
func TestBounds_LargestTransactions(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	ctx := context.Background()
	for range 30 {
		h.MustSend(t, "work", "")
	}
	a := h.MustBegin(t, "work", 1)
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Max: 30, Request: "all"})
	if err != nil || len(got) != 30 {
		t.Fatal(len(got), err)
	}
	for _, d := range got {
		for range 14 {
			h.MustStage(t, a, mailboxtest.RefOf(d), "other", "")
		}
	}
	lost := mailboxtest.Lost("KILL")
	lost.Reason = strings.Repeat("\x00", 1<<20)
	ended, err := h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return lost }, mailbox.Event{Kind: "exited", Text: "x"})
	if err != nil || len(ended) != 30 {
		t.Fatal(len(ended), err)
	}
	if c, _ := h.Box.Counts(ctx, "other"); c != (mailbox.Counts{}) {
		t.Fatalf("%+v", c)
	}
	h.Advance(time.Minute)
	h.Box.PopDue()
	lease, d, err := h.Box.StartTask(ctx, fence.Slot{Actor: "work", Number: 9}, fence.NewProcess(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		h.MustStage(t, lease.Holder(), mailboxtest.RefOf(d), "other", "")
	}
	h.Leases.Drop(lease.Slot, lease.Token)
	h.Advance(time.Hour)
	_, err = h.Box.EndTask(ctx, lease.Holder(), mailboxtest.RefOf(d), mailboxtest.Completed("late"))
	refused(t, "end a task under an expired lease", err, refusal.LeaseExpired)
	if r := h.MustShow(t, d.ID).Receipts; r[len(r)-1].Category != mailbox.CategoryStaleCompletion {
		t.Fatalf("%+v", r)
	}
	many := h.MustSend(t, "work", "")
	b := h.MustBegin(t, "work", 2)
	for range 200 {
		h.MustSettle(t, b, mailboxtest.RefOf(h.MustClaim(t, b, many)), mailboxtest.Released())
	}
	if err := h.Box.Drop(ctx, many); err != nil {
		t.Fatal(err)
	}
}

// Report 4.8 #74: whatever bytes a reason holds, the settle goes through, and what is
// stored is UTF-8 without control characters, of bounded length. Report 4.8 #77: a result
// that is too large is cut, and says so.
func TestSettle_ContentNeverFailsIt(t *testing.T) {
	h, a, _ := house(t)
	for _, reason := range []string{"a\x00b\xff", strings.Repeat("\x1b[31m", 5000), strings.Repeat("é", 4000), "\u009b31m", strings.Repeat("x", 4095) + "é"} {
		id := h.MustSend(t, "work", "")
		h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Failed(reason))
		got := h.MustShow(t, id).Receipts[0].Reason
		if !utf8.ValidString(got) || len(got) > 4<<10 || strings.ContainsAny(got, "\x00\x1b\u009b") {
			t.Fatalf("stored %q", got)
		}
	}
	id := h.MustSend(t, "work", "")
	h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Completed(strings.Repeat("x", mailbox.MaxBody+1)))
	if d := h.MustShow(t, id); !d.ResultTruncated || len(d.Result) != mailbox.MaxBody {
		t.Fatalf("%v, %d bytes", d.ResultTruncated, len(d.Result))
	}
}

// Report 4.9 #80: a key is free once its message is gone, or its own time is over, and
// the same content twice is one message.
func TestSend_Keys(t *testing.T) {
	h, _, _ := house(t)
	ctx := context.Background()
	send := func(body string, ttl time.Duration) (mailbox.Sent, error) {
		return h.Box.Send(ctx, mailbox.Outgoing{To: "work", Body: []byte(body), Key: "k", KeyTTL: ttl})
	}
	first, err := send("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := send("x", 0); err != nil || !again.Duplicate || again.ID != first.ID {
		t.Fatalf("%+v, %v", again, err)
	}
	_, err = send("y", 0)
	refused(t, "other content", err, refusal.DuplicateKey)
	if err := h.Box.Drop(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	second, err := send("y", time.Minute)
	if err != nil || second.Duplicate {
		t.Fatalf("%+v, %v", second, err)
	}
	if err := h.Box.Drop(ctx, second.ID); err != nil {
		t.Fatal(err)
	}
	if again, err := send("y", time.Minute); err != nil || again.ID != second.ID {
		t.Fatalf("within the key's own time: %+v, %v", again, err)
	}
	h.Advance(time.Minute)
	if third, err := send("y", time.Minute); err != nil || third.Duplicate {
		t.Fatalf("after the key's own time: %+v, %v", third, err)
	}
}

// P9, mistake 8: a delayed message that was made ready and is not due any more,
// because the wall clock went back, is not lost. Remove giveBack from grant and
// this fails.
func TestClaim_WallClockStepsBack(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Delay: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	h.Advance(5 * time.Second)
	h.Box.PopDue()
	h.Step(-time.Hour)
	for range 2 {
		if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
			t.Fatal(got, err)
		}
	}
	h.Step(time.Hour)
	h.Box.PopDue()
	h.MustClaim(t, a, 0)
	if n := h.Box.ReadyEntries(); n != 0 {
		t.Fatalf("%d entries are left", n)
	}
}

// Messages that were claimed by id, cancelled or dropped while they were ready
// leave entries behind that harm nobody.
func TestClaim_StaleEntries(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	var ids []mailbox.ID
	for range 5 {
		ids = append(ids, h.MustSend(t, "work", ""))
	}
	h.MustClaim(t, a, ids[0])
	if err := h.Box.Drop(ctx, ids[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Box.Cancel(ctx, ids[2]); err != nil {
		t.Fatal(err)
	}
	d := h.MustClaim(t, a, ids[3])
	h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Failed("")) // waits for its backoff, and has an old entry
	got, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{Max: 10})
	if err != nil || len(got) != 1 || got[0].ID != ids[4] {
		t.Fatalf("%+v, %v", got, err)
	}
	h.Advance(time.Second)
	h.Box.PopDue()
	if d := h.MustClaim(t, b, 0); d.ID != ids[3] {
		t.Fatalf("%s", d.ID)
	}
}

// Report 4.5 #54: a message of an actor that is not declared any more waits, and can be
// cancelled and dropped, but neither claimed nor retried.
func TestRemovedActor_KeepsItsMessages(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	held := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	waits, dead := h.MustSend(t, "work", ""), h.MustSend(t, "work", "")
	if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("other")}); err != nil {
		t.Fatal(err)
	}
	_, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work"})
	refused(t, "send", err, refusal.UnknownActor)
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	h.MustSettle(t, a, held, mailboxtest.Completed("finished"))
	if d := h.MustShow(t, waits); !strings.Contains(d.Why, "actors.yaml") {
		t.Fatalf("why: %q", d.Why)
	}
	if _, err := h.Box.Cancel(ctx, dead); err != nil {
		t.Fatal(err)
	}
	refused(t, "retry", h.Box.Retry(ctx, dead), refusal.WrongState)
	if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
		t.Fatal(err)
	}
	h.MustClaim(t, a, 0)
}

// Mistake 30: a cancelled message ends once: with the completion if that is
// first, else DEAD; its receipt says cancelled.
func TestCancel_RacesSettle(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	for i := range 200 {
		id := h.MustSend(t, "work", "")
		ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
		var all sync.WaitGroup
		var done bool
		var err error
		all.Go(func() {
			if c, err := h.Box.Cancel(ctx, id); err == nil && c.Running {
				done, _ = h.Box.EndCancelled(ctx, c.Holder, c.Ref)
			}
		})
		all.Go(func() { err = settle(h, a, ref, mailboxtest.Completed("")) })
		all.Wait()
		d := h.MustShow(t, id)
		if len(d.Receipts) != 1 || done == (err == nil) || (d.State == mailbox.Done) != (err == nil) {
			t.Fatalf("round %d: cancelled %v, completed %v, the message is %s with %d receipts", i, done, err, d.State, len(d.Receipts))
		}
		if done && d.Receipts[0].Category != mailbox.CategoryCancelled {
			t.Fatalf("%+v", d.Receipts)
		}
	}
}

// A gap is a store that holds the first Update back, after its commit, until the
// second has committed.
type gap struct {
	store.Store
	calls  atomic.Int32
	first  chan struct{} // closed when the first has committed
	second chan struct{} // closed when the second has
}

func (g *gap) Update(ctx context.Context, fn func(store.Tx) error) error {
	n := g.calls.Add(1)
	err := g.Store.Update(ctx, fn)
	switch n {
	case 1:
		close(g.first)
		<-g.second
	case 2:
		close(g.second)
	}
	return err
}

// A process leaves when a claim of it is granted on record and not yet in the
// index: that attempt is ended as well. Remove the wait for grants from Leave
// and this fails.
func TestLeave_RacesClaim(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	g := &gap{first: make(chan struct{}), second: make(chan struct{})}
	g.calls.Store(-1000)
	h.Wrap = func(st store.Store) store.Store { g.Store = st; return g }
	h.Reopen(t)
	h.Leases.Keep(a.Slot, a.Token)
	g.calls.Store(0)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{ID: id}); err != nil {
			t.Error(err)
		}
	})
	<-g.first
	ended, err := h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{})
	all.Wait()
	if d := h.MustShow(t, id); err != nil || len(ended) != 1 || d.State != mailbox.New {
		t.Fatalf("ended %v, the message is %s, %v", ended, d.State, err)
	}
	if holds, _ := h.Box.IndexHolds(); holds != 0 {
		t.Fatalf("%d holds are left", holds)
	}
}

// List merges open and closed records in send order, in pages of any size, over
// more records than one step reads.
func TestList_Pages(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	h := mailboxtest.Open(t, actor)
	ctx := context.Background()
	const n = 9000
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range n / 64 {
				h.MustSend(t, "work", "")
			}
		})
	}
	all.Wait()
	for id := mailbox.ID(1); id < n; id += 3 {
		if id > 5000 && id%100 != 1 {
			continue
		}
		all.Go(func() { _, _ = h.Box.Cancel(ctx, id) })
		if id%192 == 1 {
			all.Wait()
		}
	}
	all.Wait()
	c, _ := h.Box.Counts(ctx, "work")
	for _, state := range []mailbox.State{0, mailbox.New, mailbox.Dead} {
		for _, limit := range []int{1000, 333} {
			want := map[mailbox.State]int64{0: c.New + c.Dead, mailbox.New: c.New, mailbox.Dead: c.Dead}[state]
			var last mailbox.ID
			f := mailbox.Filter{State: state, Limit: limit}
			for got := int64(0); ; {
				page, err := h.Box.List(ctx, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range page.Messages {
					if m.ID <= last {
						t.Fatalf("%s after %s", m.ID, last)
					}
					last = m.ID
				}
				got += int64(len(page.Messages))
				if page.Next == "" {
					if got != want {
						t.Fatalf("state %d, limit %d: %d messages, want %d", state, limit, got, want)
					}
					break
				}
				f.After = page.Next
			}
		}
	}
}
