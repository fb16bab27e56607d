package mailbox_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// Report 4.6 #67: ended messages are bounded by number too, each actor's for itself, the
// oldest first, also where they are kept for ever; and a smaller number holds for
// what is there. Remove trim and this fails.
func TestRun_KeepsSoManyEnded(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor, other := mailboxtest.Actor("work"), mailboxtest.Actor("other")
		actor.Retention = mailbox.Retention{DoneCount: 5, DeadCount: 2}
		box := bubble(t, dir, actor, other)
		go func() { _ = box.Run(t.Context()) }()
		a := begin(t, box, 1)
		var ids []mailbox.ID
		kill := mailbox.Outcome{Verdict: mailbox.Kill, Category: mailbox.CategoryBadMessage, ExitCode: -1}
		for i := range 40 {
			o, to := mailboxtest.Completed(""), a
			if i%2 == 1 {
				o = kill
			}
			id := sendTo(t, box, mailbox.Outgoing{})
			ids = append(ids, id)
			got, err := box.Claim(t.Context(), to, mailbox.ClaimRequest{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := box.Settle(t.Context(), to, mailboxtest.RefOf(got[0]), o, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		counts := func(want mailbox.Counts) {
			t.Helper()
			if c, err := box.Counts(t.Context(), "work"); err != nil || c != want {
				t.Fatalf("%+v, want %+v, %v", c, want, err)
			}
		}
		counts(mailbox.Counts{Done: 5, Dead: 2})
		for i, id := range ids {
			_, err := box.Show(t.Context(), id)
			if keeps := i >= 30 && i%2 == 0 || i >= 36 && i%2 == 1; keeps != (err == nil) {
				t.Fatalf("message %d of 40: %v", i, err)
			}
		}
		actor.Retention = mailbox.Retention{Done: time.Hour, DoneCount: 1}
		if err := box.SetActors(t.Context(), []mailbox.Actor{actor, other}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		counts(mailbox.Counts{Done: 1, Dead: 2})
	})
}

// Events are bounded by number: the newest are kept, over the new epoch of a restore
// too, whose numbers begin anew far above.
func TestRun_KeepsSoManyEvents(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor := mailboxtest.Actor("work")
		actor.Retention.EventsCount = 10
		box := bubble(t, dir, actor)
		go func() { _ = box.Run(t.Context()) }()
		for range 40 {
			if err := box.Record(t.Context(), mailbox.Event{Kind: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		evs, _, err := box.Events(t.Context(), 0, 100)
		if err != nil || len(evs) != 10 || evs[9].Seq != 40 {
			t.Fatal(len(evs), err)
		}
	})
}

// Journal numbers of several epochs are counted as events, not as the gap between.
func TestTrimEvents_OverEpochs(t *testing.T) {
	actor := mailboxtest.Actor("work")
	h := mailboxtest.Open(t, actor)
	ctx := context.Background()
	record := func(n int) {
		for range n {
			if err := h.Box.Record(ctx, mailbox.Event{Kind: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	record(8)
	h.Options.AcceptRollback = true
	_ = h.Close()
	if err := os.Remove(filepath.Join(h.Dir, "mailbox.mark")); err != nil {
		t.Fatal(err)
	}
	h.MustOpen(t)
	record(3)
	actor.Retention.EventsCount = 6
	if err := h.Box.SetActors(ctx, []mailbox.Actor{actor}); err != nil {
		t.Fatal(err)
	}
	if err := h.Box.TrimEvents(ctx); err != nil {
		t.Fatal(err)
	}
	evs, _, err := h.Box.Events(ctx, 0, 100)
	if err != nil || len(evs) != 6 || evs[2].Seq != 8 || evs[5].Seq>>33 == 0 {
		t.Fatalf("%d events, %v: %+v", len(evs), err, evs)
	}
}
