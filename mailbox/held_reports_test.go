package mailbox_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// What users of other queues have met: work that ran twice while it was held, and work
// that was tried too often or not often enough. Rows are named as in
// docs/guarantees.md, "Reports from the field".

// Report 4.3 #37: what was delayed for longer than a claim lasts was delivered many
// times. A delay uses up no claim: with a send and a failure that come back
// after six hours, and claims that last an hour, each start is one, at its time, for
// one of two processes that wait.
func TestDelay_LongerThanAClaim(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor := mailboxtest.Actor("work")
		actor.ClaimTTL = time.Hour
		box := bubble(t, dir, actor)
		go func() { _ = box.Run(t.Context()) }()
		start := time.Now()
		id := sendTo(t, box, mailbox.Outgoing{Delay: 6 * time.Hour})
		starts := make(chan string, 9)
		for slot := 1; slot <= 2; slot++ {
			p := begin(t, box, slot)
			go func() {
				for {
					got, err := box.Claim(t.Context(), p, mailbox.ClaimRequest{Wait: -1})
					if err != nil || len(got) != 1 {
						return // the test is over
					}
					starts <- fmt.Sprint(got[0].ID, " attempt ", got[0].Attempt, " after ", time.Since(start))
					later := mailboxtest.Failed("later")
					later.Delay = new(6 * time.Hour)
					if got[0].Attempt == 2 {
						later = mailboxtest.Completed("")
					}
					if _, err := box.Settle(t.Context(), p, mailboxtest.RefOf(got[0]), later, nil); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for attempt := 1; attempt <= 2; attempt++ {
			if got, want := <-starts, fmt.Sprint(id, " attempt ", attempt, " after ", time.Duration(attempt)*6*time.Hour); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		time.Sleep(24 * time.Hour)
		if len(starts) != 0 {
			t.Errorf("once more: %s", <-starts)
		}
		if d, err := box.Show(t.Context(), id); err != nil || d.State != mailbox.Done || len(d.Receipts) != 2 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// Report 4.3 #35: recovery took a job three seconds after a worker had fetched it, since
// its lease came with the first heartbeat only. Report 4.3 #42: a restart of the store
// dropped the locks, and a second copy started. A claim is written with its expiry: no
// sweep takes it before that, also where the store is opened anew in between, and its
// holder goes on.
func TestSweep_BeforeTheFirstRenewal(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		h, a, b := house(t)
		ctx := context.Background()
		id := h.MustSend(t, "work", "")
		ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
		if reopened {
			h.Reopen(t)
		}
		for range 9 {
			h.Advance(time.Second)
			if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 0 {
				t.Fatalf("reopened %v: swept %v, %v", reopened, swept, err)
			}
			if got, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{}); err != nil || len(got) != 0 {
				t.Fatalf("reopened %v: a second copy %+v, %v", reopened, got, err)
			}
		}
		h.MustSettle(t, a, ref, mailboxtest.Completed("r"))
		if d := h.MustShow(t, id); d.State != mailbox.Done || d.Attempt != 1 {
			t.Errorf("%+v", d)
		}
	}
}

// Report 4.5 #48: what had stalled failed for good though attempts were left. Report 4.5
// #51: the same of what had expired once. A failure, a death and an expiry
// are charged alike: NEW after the same backoff, DEAD with the last attempt.
func TestAttempts_AreChargedAlike(t *testing.T) {
	for _, name := range []string{"failed", "expired", "died"} {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		ctx := context.Background()
		id := h.MustSend(t, "work", "")
		for attempt := 1; attempt <= 3; attempt++ {
			a := h.MustBegin(t, "work", attempt)
			ref := mailboxtest.RefOf(h.MustClaim(t, a, id))
			switch name {
			case "failed":
				h.MustSettle(t, a, ref, mailboxtest.Failed("no"))
			case "expired":
				h.Advance(10 * time.Second)
				if _, err := h.Box.SweepExpired(ctx); err != nil {
					t.Fatal(err)
				}
			case "died":
				if err := died(h, a, true); err != nil {
					t.Fatal(err)
				}
			}
			d := h.MustShow(t, id)
			if attempt == 3 {
				if d.State != mailbox.Dead || d.Attempts != 3 {
					t.Errorf("%s: %+v", name, d)
				}
				break
			}
			if wait := d.AvailableAt.Sub(h.Now()); d.State != mailbox.New || d.Attempts != attempt || wait != time.Second<<(attempt-1) {
				t.Errorf("%s: %s after attempt %d, charged %d, available in %s", name, d.State, attempt, d.Attempts, wait)
			}
			h.Advance(time.Minute)
			h.Box.PopDue()
		}
	}
}

// Report 4.5 #49: jobs of a scheduler skipped the limit of attempts, and looped. However
// a message came to be, it is DEAD after max_attempts starts that kill their process.
func TestMaxAttempts_ExemptsNothing(t *testing.T) {
	actor := mailboxtest.Actor("work")
	h := mailboxtest.Open(t, actor, mailboxtest.Actor("other"))
	ctx := context.Background()
	send := func(m mailbox.Outgoing) mailbox.ID {
		m.To = "work"
		sent, err := h.Box.Send(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		return sent.ID
	}
	born := map[string]mailbox.ID{
		"sent":     send(mailbox.Outgoing{}),
		"delayed":  send(mailbox.Outgoing{Delay: time.Second}),
		"at":       send(mailbox.Outgoing{At: h.Now().Add(time.Second)}),
		"keyed":    send(mailbox.Outgoing{Key: "k", KeyTTL: time.Hour}),
		"grouped":  send(mailbox.Outgoing{Group: "g"}),
		"priority": send(mailbox.Outgoing{Priority: 100}),
	}
	batch, err := h.Box.SendBatch(ctx, []mailbox.Outgoing{{To: "work"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	born["in a batch"] = batch[0].ID
	imported, err := h.Box.Import(ctx, []mailbox.Import{{Outgoing: mailbox.Outgoing{To: "work"}, State: mailbox.New}})
	if err != nil {
		t.Fatal(err)
	}
	born["imported"] = imported[0].ID
	o := h.MustBegin(t, "other", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, o, h.MustSend(t, "other", "")))
	born["staged"] = h.MustStage(t, o, ref, "work", "")
	h.MustSettle(t, o, ref, mailboxtest.Completed(""))
	again := send(mailbox.Outgoing{})
	if _, err := h.Box.Cancel(ctx, again); err != nil {
		t.Fatal(err)
	}
	if err := h.Box.Retry(ctx, again); err != nil {
		t.Fatal(err)
	}
	born["retried"] = again

	for round := 1; round <= actor.Retry.MaxAttempts; round++ {
		h.Advance(time.Hour)
		h.Box.PopDue()
		a := h.MustBegin(t, "work", round)
		got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Max: 100})
		if err != nil || len(got) != len(born) {
			t.Fatalf("round %d: %d started of %d, %v", round, len(got), len(born), err)
		}
		if err := died(h, a, true); err != nil {
			t.Fatal(err)
		}
	}
	for how, id := range born {
		if d := h.MustShow(t, id); d.State != mailbox.Dead || len(d.Receipts) != actor.Retry.MaxAttempts {
			t.Errorf("%s: %s after %d starts", how, d.State, len(d.Receipts))
		}
	}
}
