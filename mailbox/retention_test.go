package mailbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// Report 4.6 #67: completed records filled the store. Ended messages and events go by
// themselves when their retention is over, PARKED and waiting ones stay. Remove the timer of retain
// and this fails.
func TestRun_RemovesWhatMayGo(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailbox.Actor{Name: "work", Mailbox: true, ClaimTTL: time.Minute, Auto: true,
			Retry:     mailbox.Retry{MaxAttempts: 1},
			Retention: mailbox.Retention{Done: time.Hour, Dead: 30 * time.Hour, Events: 10 * time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- box.Run(ctx) }()
		h := begin(t, box, 1)
		done, dead, waits := sendTo(t, box, mailbox.Outgoing{}), sendTo(t, box, mailbox.Outgoing{}), sendTo(t, box, mailbox.Outgoing{})
		end := func(id mailbox.ID, o mailbox.Outcome) {
			ds, err := box.Claim(t.Context(), h, mailbox.ClaimRequest{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := box.Settle(t.Context(), h, mailboxtest.RefOf(ds[0]), o, nil); err != nil {
				t.Fatal(err)
			}
		}
		end(done, mailboxtest.Completed("result"))
		end(dead, mailboxtest.Failed("no"))
		there := func(id mailbox.ID) bool {
			_, err := box.Show(t.Context(), id)
			if err != nil && !refusal.Has(err, refusal.MessageMissing) {
				t.Fatal(err)
			}
			return err == nil
		}
		check := func(when string, wantDone, wantDead, wantEvents bool) {
			t.Helper()
			synctest.Wait()
			evs, _, err := box.Events(t.Context(), 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			if there(done) != wantDone || there(dead) != wantDead || !there(waits) || len(evs) > 0 != wantEvents {
				t.Errorf("%s: DONE %v, DEAD %v, NEW %v, %d events", when, there(done), there(dead), there(waits), len(evs))
			}
		}
		time.Sleep(59 * time.Minute)
		check("before the first is over", true, true, true)
		time.Sleep(2 * time.Minute)
		check("after an hour", false, true, true)
		time.Sleep(10 * time.Hour)
		check("after the events' time", false, true, false)
		time.Sleep(20 * time.Hour)
		check("after all", false, false, false)
		c, err := box.Counts(t.Context(), "work")
		if err != nil || c != (mailbox.Counts{New: 1}) {
			t.Errorf("counts %+v, %v", c, err)
		}
		cancel()
		<-ran
	})
}

// A policy that keeps messages longer counts for those that ended before it too.
func TestRun_KeepsLongerOnceToldSo(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor := mailbox.Actor{Name: "work", Mailbox: true, ClaimTTL: time.Minute, Auto: true,
			Retry: mailbox.Retry{MaxAttempts: 1}, Retention: mailbox.Retention{Done: time.Hour}}
		box := bubble(t, dir, actor)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- box.Run(ctx) }()
		h := begin(t, box, 1)
		id := sendTo(t, box, mailbox.Outgoing{})
		ds, err := box.Claim(t.Context(), h, mailbox.ClaimRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Settle(t.Context(), h, mailboxtest.RefOf(ds[0]), mailboxtest.Completed(""), nil); err != nil {
			t.Fatal(err)
		}
		actor.Retention.Done = 5 * time.Hour
		if err := box.SetActors(t.Context(), []mailbox.Actor{actor}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if _, err := box.Show(t.Context(), id); err != nil {
			t.Errorf("gone after 3 h of 5: %v", err)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if _, err := box.Show(t.Context(), id); !refusal.Has(err, refusal.MessageMissing) {
			t.Errorf("still there after 6 h of 5: %v", err)
		}
		cancel()
		<-ran
	})
}
