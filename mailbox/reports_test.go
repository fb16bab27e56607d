package mailbox_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// What users of other queues have met, played on this one. Rows are named as in
// docs/guarantees.md, "Reports from the field".

// Report 4.1 #1: a rescuer rewrote a completed job as waiting. Report 4.1 #15: a job
// that was logged as done was found failed minutes later. A sweep that comes with a
// list from before the end, however late, changes nothing. Remove the state from the
// comparison in Sweep and this fails.
func TestSweep_LeavesWhatHasEnded(t *testing.T) {
	dead := mailboxtest.Actor("work")
	dead.Retry.MaxAttempts = 1
	for name, o := range map[string]mailbox.Outcome{"completed": mailboxtest.Completed("r"), "failed for good": mailboxtest.Failed("no"),
		"released": mailboxtest.Released()} {
		h := mailboxtest.Open(t, dead)
		ctx := context.Background()
		a := h.MustBegin(t, "work", 1)
		id := h.MustSend(t, "work", "")
		h.MustClaim(t, a, id)
		listed, err := h.Box.Claims(ctx)
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		h.MustSettle(t, a, listed[0].Ref, o)
		before := flat(h.MustShow(t, id))
		h.Advance(time.Hour)
		if swept, err := h.Box.Sweep(ctx, listed[0].Ref); swept || err != nil {
			t.Errorf("%s: swept %v, %v", name, swept, err)
		}
		if _, err := h.Box.SweepExpired(ctx); err != nil {
			t.Error(err)
		}
		if after := flat(h.MustShow(t, id)); after != before {
			t.Errorf("%s: a late sweep made %s of %s", name, after, before)
		}
	}
}

// Report 4.1 #10: a second pass of recovery worked off its old list. Two passes hold
// the same list; the first gives the message back, another claims it: the second one
// finds nothing to do.
func TestSweep_SecondPassOfTheSameList(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	h.MustClaim(t, a, id)
	h.Advance(10 * time.Second)
	first, err := h.Box.Claims(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Box.Claims(ctx)
	if err != nil || len(first) != 1 || len(second) != 1 {
		t.Fatal(first, second, err)
	}
	if swept, err := h.Box.Sweep(ctx, first[0].Ref); !swept || err != nil {
		t.Fatal(swept, err)
	}
	h.Advance(time.Second)
	current := h.MustClaim(t, b, id)
	before := flat(h.MustShow(t, id))
	// Also when the new claim has expired in its turn: its own sweep is another.
	for _, later := range []time.Duration{0, time.Minute} {
		h.Advance(later)
		if swept, err := h.Box.Sweep(ctx, second[0].Ref); swept || err != nil {
			t.Fatalf("after %s: swept %v, %v", later, swept, err)
		}
	}
	if d := h.MustShow(t, id); d.Claim == nil || d.Claim.Token != current.Token || len(d.Receipts) != 1 {
		t.Fatalf("%+v, before it was %s", d, before)
	}
}

// Report 4.1 #2: jobs ended finished and failed at once, when a worker was pruned
// while its completion committed. One of the two wins, and there is one receipt.
func TestLeave_RacesComplete(t *testing.T) {
	h, _, _ := house(t)
	ctx := context.Background()
	completed := 0
	for round := range 300 {
		p := h.MustBegin(t, "work", 3+round%2)
		id := h.MustSend(t, "work", "")
		ref := mailboxtest.RefOf(h.MustClaim(t, p, id))
		var all sync.WaitGroup
		var said error
		all.Go(func() { said = settle(h, p, ref, mailboxtest.Completed("r")) })
		all.Go(func() {
			for range round % 10 {
				runtime.Gosched()
			}
			if _, err := h.Box.Leave(ctx, p, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{Kind: "exited"}); err != nil {
				t.Errorf("leave: %v", err)
			}
		})
		all.Wait()
		d := h.MustShow(t, id)
		want, category := mailbox.Done, mailbox.CategoryCompleted
		if said != nil {
			refused(t, "complete", said, refusal.ActorLeaseLost)
			want, category = mailbox.New, mailbox.CategoryWorkerLost
		} else {
			completed++
		}
		if d.State != want || len(d.Receipts) != 1 || d.Receipts[0].Category != category {
			t.Fatalf("round %d: complete said %v, the message is %s with %+v", round, said, d.State, d.Receipts)
		}
		if d.State == mailbox.New {
			if err := h.Box.Drop(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of 300 completed", completed)
}

// Report 4.1 #4: a slow worker and its replacement both completed, and the result was
// overwritten. The second completion is refused, the first result stays, also when
// the slow one comes back again and again.
func TestSettle_SlowWorkerKeepsTheResult(t *testing.T) {
	h, slow, quick := house(t)
	id := h.MustSend(t, "work", "")
	old := mailboxtest.RefOf(h.MustClaim(t, slow, id))
	h.Advance(10 * time.Second)
	if _, err := h.Box.SweepExpired(context.Background()); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Second)
	h.MustSettle(t, quick, mailboxtest.RefOf(h.MustClaim(t, quick, id)), mailboxtest.Completed("of the second"))
	before := flat(h.MustShow(t, id))
	for range 3 {
		refused(t, "the slow one completes", settle(h, slow, old, mailboxtest.Completed("of the first")), refusal.FencingTokenStale)
	}
	if after := flat(h.MustShow(t, id)); after != before {
		t.Fatalf("%s became %s", before, after)
	}
}

// Report 4.1 #5: complete was accepted for a job that nobody held, where fail was
// refused. Before any claim, after the expiry and after the sweep all verbs get the
// same refusal, and nothing changes.
func TestSettle_WhatNobodyHolds(t *testing.T) {
	h, a, _ := house(t)
	id := h.MustSend(t, "work", "")
	all := func(when string, ref mailbox.Ref, want refusal.Category) {
		t.Helper()
		before := flat(h.MustShow(t, id))
		var why string
		for i, o := range []mailbox.Outcome{mailboxtest.Completed(""), mailboxtest.Failed(""), mailboxtest.Released()} {
			err := settle(h, a, ref, o)
			refused(t, when, err, want)
			if r := refusal.Of(err); i == 0 {
				why = r.Why
			} else if r.Why != why {
				t.Errorf("%s: one verb is told %q, another %q", when, why, r.Why)
			}
		}
		if after := flat(h.MustShow(t, id)); after != before {
			t.Errorf("%s: %s became %s", when, before, after)
		}
	}
	all("before any claim, without a token", mailbox.Ref{ID: id}, refusal.FencingTokenStale)
	all("before any claim, with one", mailbox.Ref{ID: id, Token: 7}, refusal.FencingTokenStale)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	h.Advance(10 * time.Second)
	all("after the expiry", ref, refusal.LeaseExpired)
	if _, err := h.Box.SweepExpired(context.Background()); err != nil {
		t.Fatal(err)
	}
	all("after the sweep", ref, refusal.LeaseExpired)
}

// Report 4.1 #9: recovery at the start ran work again that had been started in the
// same millisecond. What is claimed at the very instant at which the old claims are
// recovered and swept is left alone. Sweep what expires later, and this fails.
func TestSweep_SparesWhatBeginsAtThatInstant(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	id, other := h.MustSend(t, "work", ""), h.MustSend(t, "work", "")
	h.MustClaim(t, a, id)
	h.Advance(10 * time.Second) // the clocks stand still from here on
	h.Reopen(t)
	rec := recovery.New(h.Box, recovery.NewWorkspaces(h.Dir), nil)
	out, err := rec.Reconcile(ctx, nil)
	if err != nil || len(out.Swept)+len(out.Recovered) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	b := h.MustBegin(t, "work", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, b, other))
	if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 0 {
		t.Fatalf("swept %v, %v", swept, err)
	}
	h.MustSettle(t, b, ref, mailboxtest.Completed("r"))
	if d := h.MustShow(t, other); d.State != mailbox.Done || d.Attempt != 1 || len(d.Receipts) != 1 {
		t.Fatalf("%+v", d)
	}
}

// Report 4.1 #16: an operator put a job back that was being worked on, and it ran
// twice. A retry of a message that is held is refused, and says to wait.
func TestRetry_RefusesWhatIsHeld(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
	refused(t, "retry", h.Box.Retry(ctx, id), refusal.WrongState)
	if got, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatalf("handed out twice: %+v, %v", got, err)
	}
	h.MustSettle(t, a, ref, mailboxtest.Completed(""))
	refused(t, "retry what is done", h.Box.Retry(ctx, id), refusal.WrongState)
}

// Report 4.2 #20: an active entry whose lease entry was gone was seen by no sweeper.
// The index is made from the records at the start, so every claim is in it; and a
// claim whose process has no lease on record is not live, whatever its expiry says:
// it is recovered, and its worker refused.
func TestLoad_FindsEveryClaim(t *testing.T) {
	h, a, b := house(t)
	ctx := context.Background()
	first, second := h.MustSend(t, "work", ""), h.MustSend(t, "work", "")
	h.MustClaim(t, a, first)
	orphan := mailboxtest.RefOf(h.MustClaim(t, b, second))
	err := h.Store.Update(ctx, func(tx store.Tx) error {
		key := append([]byte{fence.Space}, "work\x00\x00\x02"...)
		if tx.Get(key) == nil {
			t.Error("the lease is not where it is looked for")
		}
		tx.Delete(key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Reopen(t)
	if holds, expiries := h.Box.IndexHolds(); holds != 2 || expiries != 2 {
		t.Fatalf("the index has %d holds and %d expiries", holds, expiries)
	}
	refused(t, "complete without a lease", settle(h, b, orphan, mailboxtest.Completed("")), refusal.ActorLeaseLost)
	claims, err := h.Box.Claims(ctx)
	if err != nil || len(claims) != 2 || !claims[0].Live || claims[1].Live {
		t.Fatalf("%+v, %v", claims, err)
	}
	out, err := recovery.New(h.Box, recovery.NewWorkspaces(h.Dir), nil).Reconcile(ctx, nil)
	if err != nil || len(out.Recovered) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, id := range []mailbox.ID{first, second} {
		if d := h.MustShow(t, id); d.State != mailbox.New || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryWorkerLost {
			t.Errorf("%+v", d)
		}
	}
}

// Report 4.2 #21: thousands of jobs ran "for 91 days", because nobody had swept. A
// sweep that comes a day late ends all of them at once, each with one charge.
func TestSweep_ADayLate(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	const n = 200
	var ids []mailbox.ID
	for range n {
		ids = append(ids, h.MustSend(t, "work", ""))
	}
	for _, id := range ids {
		h.MustClaim(t, a, id)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h.Advance(24 * time.Hour)
	h.MustOpen(t)
	swept, err := h.Box.SweepExpired(ctx)
	if err != nil || len(swept) != n {
		t.Fatalf("%d swept, %v", len(swept), err)
	}
	if c, err := h.Box.Counts(ctx, "work"); err != nil || c != (mailbox.Counts{New: n}) {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, id := range ids {
		if d := h.MustShow(t, id); d.Attempts != 1 || len(d.Receipts) != 1 {
			t.Fatalf("%+v", d)
		}
	}
}

// Report 4.2 #22: after an upgrade timeouts never fired, since an index that only the
// new version wrote was missing. A store of the first format, with a claim in it that
// is live, is opened: the claim expires on time, and its message is worked on again.
//
// testdata/first holds what version 0.1 left: two messages, of which the first is
// claimed for ten seconds. It stays as it is when formats change.
func TestOpen_StoreOfTheFirstFormat(t *testing.T) {
	dir := mailboxtest.Dir(t)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "first"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bolt.DataFile, bolt.MarkFile} {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := mailboxtest.New(dir)
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	ctx := context.Background()
	h.Verify(t)
	d := h.MustShow(t, 1)
	if d.State != mailbox.Claimed || string(d.Body) != "claimed" {
		t.Fatalf("%+v", d)
	}
	h.Advance(10*time.Second - 1)
	if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 0 {
		t.Fatalf("swept early: %v, %v", swept, err)
	}
	h.Advance(1)
	if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 1 || swept[0].ID != 1 || swept[0].Token != d.Claim.Token {
		t.Fatalf("swept %v, %v", swept, err)
	}
	h.Advance(time.Minute)
	h.Box.PopDue()
	b := h.MustBegin(t, "work", 2)
	for range 2 {
		got := h.MustClaim(t, b, 0)
		if got.Token <= d.Claim.Token {
			t.Fatalf("token %d after %d", got.Token, d.Claim.Token)
		}
		h.MustSettle(t, b, mailboxtest.RefOf(got), mailboxtest.Completed("r"))
	}
	if next := h.MustSend(t, "work", ""); next <= 2 {
		t.Fatalf("id %s is given again", next)
	}
}

// Report 4.2 #32: a message whose attempts all timed out was neither deliverable nor
// dead. With expiries alone it is DEAD after exactly max_attempts, is counted, and
// the journal says so.
func TestSweep_ExpiriesAloneEndDead(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	id := h.MustSend(t, "work", "")
	for attempt := 1; attempt <= 3; attempt++ {
		if d := h.MustClaim(t, a, 0); d.ID != id || d.Attempt != attempt {
			t.Fatalf("%+v, want attempt %d", d, attempt)
		}
		h.Advance(10 * time.Second)
		if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 1 {
			t.Fatal(swept, err)
		}
		h.Advance(time.Minute)
		h.Box.PopDue()
	}
	if got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
		t.Fatalf("a fourth start: %+v, %v", got, err)
	}
	if c, err := h.Box.Counts(ctx, "work"); err != nil || c != (mailbox.Counts{Dead: 1}) {
		t.Fatalf("%+v, %v", c, err)
	}
	dead := 0
	for _, ev := range mustEvents(t, h) {
		if ev.Kind == protocol.EventDead && ev.Message == id {
			dead++
		}
	}
	if dead != 1 {
		t.Errorf("%d events say that it is dead", dead)
	}
}

// Mistakes 7 and 8, I1, report 4.7 #72: after a step of the wall clock, forward or back,
// everything fired or nothing ever did. With five delayed and three leased messages,
// and a step of an hour either way: no lease and no claim ends early or late, tokens
// and renewals are as before, and each delayed message comes exactly once, when the
// wall clock says so.
func TestWallStep_MovesDelaysAndNoLease(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			h, a, b := house(t)
			ctx := context.Background()
			var refs []mailbox.Ref
			for range 3 {
				refs = append(refs, mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", ""))))
			}
			delayed := map[mailbox.ID]int{}
			for i := range 5 {
				sent, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Delay: time.Duration(i+1) * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				delayed[sent.ID] = 0
			}
			h.Step(step)
			h.Box.WallStepped()
			deliver := func() (n int) {
				h.Box.PopDue()
				got, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{Max: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range got {
					delayed[d.ID]++
					h.MustSettle(t, b, mailboxtest.RefOf(d), mailboxtest.Completed(""))
				}
				return len(got)
			}
			want := 5
			if step < 0 {
				want = 0
			}
			if n := deliver(); n != want {
				t.Errorf("%d delayed messages at once, want %d", n, want)
			}
			// The leases: nothing is swept, and a renewal moves the expiry as ever.
			h.Advance(9 * time.Second)
			if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 0 {
				t.Fatalf("swept %v after 9 of 10 s, %v", swept, err)
			}
			if _, left, err := h.Box.Renew(ctx, a, refs[0], nil); err != nil || left != 10*time.Second {
				t.Fatalf("renewed: %s left, %v", left, err)
			}
			h.Advance(time.Second)
			if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 2 {
				t.Fatalf("swept %v after 10 s, %v", swept, err)
			}
			h.MustSettle(t, a, refs[0], mailboxtest.Completed(""))
			for _, ref := range refs[1:] {
				refused(t, "complete after the expiry", settle(h, a, ref, mailboxtest.Completed("")), refusal.LeaseExpired)
				if err := h.Box.Drop(ctx, ref.ID); err != nil {
					t.Fatal(err)
				}
			}
			// The delays: by the wall clock, once each.
			h.Step(2 * time.Hour)
			h.Box.WallStepped()
			deliver()
			h.Step(-2 * time.Hour)
			h.Box.WallStepped()
			deliver()
			for id, n := range delayed {
				if n != 1 {
					t.Errorf("%s came %d times", id, n)
				}
			}
		})
	}
}

// Report 4.6 #61: old jobs pinned hundreds of gigabytes of log. What ended and was
// removed leaves its room to others: the file of a mailbox through which message
// after message goes, each given back, delayed and claimed again, does not grow with
// the number of those that went.
func TestFile_IsBoundedByWhatLives(t *testing.T) {
	h, a, _ := house(t)
	ctx := context.Background()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(h.Dir, bolt.DataFile))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	round := func() {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 10 {
					id := h.MustSend(t, "work", "x")
					ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
					later := mailboxtest.Failed("later")
					later.Delay = new(time.Duration)
					h.MustSettle(t, a, ref, later)
					h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Completed("r"))
					if err := h.Box.Drop(ctx, id); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	for range 3 {
		round()
	}
	before := size()
	for range 12 {
		round()
	}
	// Events stay for their own time, about 100 bytes each: the rest is reused.
	events := int64(len(mustEvents(t, h)))
	if after := size(); after > 2*before+events*256 {
		t.Errorf("%d bytes after 480 messages, %d after 2400, with %d events", before, after, events)
	}
}

// Report 4.6 #68: heartbeats were lost while somebody sent in bulk. Beside a crowd of
// senders every renewal is answered within a tenth of the claim's time: a commit takes all
// that wait, so a renewal waits for two at most, and there are about as many renewals
// as commits, however long a commit takes on this machine.
func TestRenew_BesideABulkSend(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.ClaimTTL, actor.Limit = 30*time.Second, 0
	h := mailboxtest.New(t.TempDir()) // on the disk
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	ctx := context.Background()
	if err := h.Box.SetActors(ctx, []mailbox.Actor{actor}); err != nil {
		t.Fatal(err)
	}
	a := h.MustBegin(t, "work", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	before := h.DB.Stats().Commits
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for range n / 64 {
				h.MustSend(t, "work", "one of many")
			}
		})
	}
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	var worst time.Duration
	renewals := 0
	for sending := true; sending; renewals++ {
		select {
		case <-done:
			sending = false
		default:
		}
		began := time.Now()
		if _, _, err := h.Box.Renew(ctx, a, ref, nil); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(began))
	}
	commits := h.DB.Stats().Commits - before
	t.Logf("%d renewals beside %d sends in %d commits, the slowest took %s", renewals, n, commits, worst)
	if uint64(renewals)*20 < commits {
		t.Errorf("%d renewals in the time of %d commits", renewals, commits)
	}
}
