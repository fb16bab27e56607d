package mailbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
)

// grouped sends a message of a group to work.
func grouped(t *testing.T, h *mailboxtest.House, group string, priority int) mailbox.ID {
	t.Helper()
	s, err := h.Box.Send(context.Background(), mailbox.Outgoing{To: "work", Group: group, Priority: priority})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// nextOf is what a claim of any message gets, 0 for none.
func nextOf(t *testing.T, h *mailboxtest.House, a fence.Holder) mailbox.Delivery {
	t.Helper()
	got, err := h.Box.Claim(context.Background(), a, mailbox.ClaimRequest{})
	if err != nil || len(got) > 1 {
		t.Fatal(len(got), err)
	}
	if len(got) == 0 {
		return mailbox.Delivery{}
	}
	return got[0]
}

// Report 4.2 #31: a group is unlocked however the message ahead ends: done, dead (by
// its last attempt, its worker's death, a person), parked, or dropped; and after a
// restart. Remove the push of the next one from moveTx, or the removal of the lock,
// and this fails.
func TestGroup_UnlockedByEveryEnd(t *testing.T) {
	ctx := context.Background()
	kill := mailbox.Outcome{Verdict: mailbox.Kill, Category: mailbox.CategoryBadMessage, ExitCode: -1}
	lost := func(h *mailboxtest.House, a fence.Holder, _ mailbox.Ref) error {
		_, err := h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{Kind: "exited"})
		return err
	}
	for name, c := range map[string]struct {
		end   func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error
		state mailbox.State // 0: gone
		park  bool
	}{
		"done": {state: mailbox.Done, end: func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error {
			_, err := h.Box.Settle(ctx, a, ref, mailboxtest.Completed(""), nil)
			return err
		}},
		"bad": {state: mailbox.Dead, end: func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error {
			_, err := h.Box.Settle(ctx, a, ref, kill, nil)
			return err
		}},
		"worker lost at the last attempt": {state: mailbox.Dead, end: lost},
		"parked":                          {state: mailbox.Parked, park: true, end: lost},
		"supervisor lost at the last attempt": {state: mailbox.Dead, end: func(h *mailboxtest.House, _ fence.Holder, _ mailbox.Ref) error {
			h.Reopen(t)
			_, err := recovery.New(h.Box, recovery.NewWorkspaces(h.Dir), nil).Reconcile(ctx, nil)
			return err
		}},
		"expired": {state: mailbox.Dead, end: func(h *mailboxtest.House, _ fence.Holder, _ mailbox.Ref) error {
			h.Advance(time.Minute)
			_, err := h.Box.SweepExpired(ctx)
			return err
		}},
		"cancelled": {state: mailbox.Dead, end: func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error {
			if _, err := h.Box.Cancel(ctx, ref.ID); err != nil {
				return err
			}
			_, err := h.Box.EndCancelled(ctx, a, ref)
			return err
		}},
		"released and dropped": {end: func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error {
			if _, err := h.Box.Settle(ctx, a, ref, mailboxtest.Released(), nil); err != nil {
				return err
			}
			return h.Box.Drop(ctx, ref.ID)
		}},
		"released and cancelled": {state: mailbox.Dead, end: func(h *mailboxtest.House, a fence.Holder, ref mailbox.Ref) error {
			if _, err := h.Box.Settle(ctx, a, ref, mailboxtest.Released(), nil); err != nil {
				return err
			}
			_, err := h.Box.Cancel(ctx, ref.ID)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			actor := mailboxtest.Actor("work")
			actor.Retry.MaxAttempts, actor.Park = 1, c.park
			h := mailboxtest.Open(t, actor)
			a := h.MustBegin(t, "work", 1)
			first, second, other := grouped(t, h, "g", 0), grouped(t, h, "g", 0), grouped(t, h, "", 0)
			d := nextOf(t, h, a)
			if d.ID != first {
				t.Fatalf("%s is first, want %s", d.ID, first)
			}
			b := h.MustBegin(t, "work", 2)
			if got := nextOf(t, h, b); got.ID != other {
				t.Fatalf("%s beside %s of the same group, want %s", got.ID, first, other)
			}
			if show := h.MustShow(t, second); show.BlockedBy != first || !strings.Contains(show.Why, first.String()) {
				t.Fatalf("blocked by %s, %q", show.BlockedBy, show.Why)
			}
			_, err := h.Box.Claim(ctx, b, mailbox.ClaimRequest{ID: second})
			refused(t, "claim a follower by id", err, refusal.MessageNotClaimable)
			if err := c.end(h, a, mailboxtest.RefOf(d)); err != nil {
				t.Fatal(err)
			}
			if c.state != 0 {
				if s := h.MustShow(t, first).State; s != c.state {
					t.Fatalf("the first is %s, want %s", s, c.state)
				}
			}
			if got := nextOf(t, h, h.MustBegin(t, "work", 3)); got.ID != second {
				t.Fatalf("then %s, want %s", got.ID, second)
			}
		})
	}
}

// A message that failed and waits for its next attempt holds up those behind it, also
// over a restart, and those of other groups and without one go on. Its place is that
// of its sending, whatever its priority.
func TestGroup_KeepsSendOrderOverRetries(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	a := h.MustBegin(t, "work", 1)
	first, second, other := grouped(t, h, "g", 0), grouped(t, h, "g", 9), grouped(t, h, "h", -9)
	h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, first)), mailboxtest.Failed("x"))
	for slot := 2; slot < 4; slot++ {
		if d := h.MustShow(t, second); d.BlockedBy != first || !strings.Contains(d.Why, "waits until") {
			t.Fatalf("%+v", d.Why)
		}
		h.Reopen(t)
		a = h.MustBegin(t, "work", slot)
	}
	if got := nextOf(t, h, a); got.ID != other {
		t.Fatalf("%s, want %s", got.ID, other)
	}
	if got := nextOf(t, h, a); got.ID != 0 {
		t.Fatalf("%s while the first waits", got.ID)
	}
	h.Advance(time.Second)
	h.Box.PopDue()
	for _, want := range []mailbox.ID{first, second} {
		got := nextOf(t, h, a)
		if got.ID != want {
			t.Fatalf("%s, want %s", got.ID, want)
		}
		h.MustSettle(t, a, mailboxtest.RefOf(got), mailboxtest.Completed(""))
	}
}

// A message that a person retries waits for a later one of its group that runs, and
// comes right after it, before those that were sent after it.
func TestGroup_RetriedMemberWaitsForTheRunning(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	a := h.MustBegin(t, "work", 1)
	first, second, third := grouped(t, h, "g", 0), grouped(t, h, "g", 0), grouped(t, h, "g", 0)
	kill := mailbox.Outcome{Verdict: mailbox.Kill, Category: mailbox.CategoryBadMessage, ExitCode: -1}
	h.MustSettle(t, a, mailboxtest.RefOf(nextOf(t, h, a)), kill)
	running := nextOf(t, h, a)
	if running.ID != second {
		t.Fatal(running.ID)
	}
	if err := h.Box.Retry(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	if got := nextOf(t, h, a); got.ID != 0 {
		t.Fatalf("%s beside %s", got.ID, second)
	}
	if d := h.MustShow(t, first); d.BlockedBy != second {
		t.Fatalf("blocked by %s", d.BlockedBy)
	}
	h.MustSettle(t, a, mailboxtest.RefOf(running), mailboxtest.Completed(""))
	for _, want := range []mailbox.ID{first, third} {
		got := nextOf(t, h, a)
		if got.ID != want {
			t.Fatalf("%s, want %s", got.ID, want)
		}
		h.MustSettle(t, a, mailboxtest.RefOf(got), mailboxtest.Completed(""))
	}
}

// Of what is staged, those of a group that become visible late wait for the one that
// runs; and a claim that waits is woken by the end of what is ahead.
func TestGroup_StagedAndWaiting(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		a, b := begin(t, box, 1), begin(t, box, 2)
		sendTo(t, box, mailbox.Outgoing{})
		parent, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{})
		if err != nil || len(parent) != 1 {
			t.Fatal(parent, err)
		}
		staged, err := box.Stage(t.Context(), a, mailboxtest.RefOf(parent[0]), mailbox.Outgoing{To: "work", Group: "g"})
		if err != nil {
			t.Fatal(err)
		}
		later := sendTo(t, box, mailbox.Outgoing{Group: "g"})
		running, err := box.Claim(t.Context(), b, mailbox.ClaimRequest{})
		if err != nil || len(running) != 1 || running[0].ID != later {
			t.Fatal(running, err)
		}
		got := make(chan mailbox.ID, 1)
		go func() {
			next, _ := box.Claim(t.Context(), b, mailbox.ClaimRequest{Wait: -1})
			for _, d := range next {
				got <- d.ID
			}
		}()
		synctest.Wait()
		if _, err := box.Settle(t.Context(), a, mailboxtest.RefOf(parent[0]), mailboxtest.Completed(""), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case id := <-got:
			t.Fatalf("%s beside %s", id, later)
		default:
		}
		if _, err := box.Settle(t.Context(), b, mailboxtest.RefOf(running[0]), mailboxtest.Completed(""), nil); err != nil {
			t.Fatal(err)
		}
		if id := <-got; id != staged.ID {
			t.Fatalf("%s, want %s", id, staged.ID)
		}
		synctest.Wait()
	})
}

// A claim costs the same however many wait in its group: none but the first of it is
// in the index.
func TestGroup_FollowersAreNotInTheIndex(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	for i := range 200 {
		grouped(t, h, fmt.Sprint("g", i%2), 0)
	}
	if n := h.Box.ReadyEntries(); n != 2 {
		t.Fatalf("%d entries for two groups", n)
	}
	h.Reopen(t)
	if err := h.Box.ReadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.Box.ReadyEntries(); n != 2 {
		t.Fatalf("%d entries for two groups after a restart", n)
	}
}

// Transactions with groups and times to live stay within the store's bounds: a
// process that leaves with many claims, and completions with many staged sends.
func TestGroup_LargestTransactions(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	ctx := context.Background()
	a := h.MustBegin(t, "work", 1)
	for i := range 30 {
		if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Group: fmt.Sprint(i), TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Max: 30})
	if err != nil || len(got) != 30 {
		t.Fatal(len(got), err)
	}
	for i := range 30 {
		if _, err := h.Box.Stage(ctx, a, mailboxtest.RefOf(got[0]), mailbox.Outgoing{To: "other", Group: fmt.Sprint(i), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if s := h.MustSettle(t, a, mailboxtest.RefOf(got[0]), mailboxtest.Completed("")); len(s.Visible) != 30 {
		t.Fatal(len(s.Visible))
	}
	h.Advance(2 * time.Second)
	ended, err := h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{Kind: "exited"})
	if err != nil || len(ended) != 29 {
		t.Fatal(len(ended), err)
	}
	if c, _ := h.Box.Counts(ctx, "work"); c.Dead != 29 || c.Done != 1 {
		t.Fatalf("%+v", c)
	}
}
