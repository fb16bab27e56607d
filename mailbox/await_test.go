package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// A process that waits for what it sent, and loses its lease meanwhile, is refused
// like every other request of its own (P2.6), whatever ended the wait: the message's
// end, its removal, the end of its patience. Check the lease before the wait alone and
// this fails.
func TestAwaitSent_RefusesProcessThatLostItsLease(t *testing.T) {
	for name, end := range map[string]func(box *mailbox.Box, id mailbox.ID, cancel func()){
		"it has ended": func(box *mailbox.Box, id mailbox.ID, _ func()) { _, _ = box.Cancel(context.Background(), id) },
		"it is gone":   func(box *mailbox.Box, id mailbox.ID, _ func()) { _ = box.Drop(context.Background(), id) },
		"time is up":   func(_ *mailbox.Box, _ mailbox.ID, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := mailboxtest.Dir(t)
			synctest.Test(t, func(t *testing.T) {
				box := bubble(t, dir, mailboxtest.Actor("work"))
				holder := begin(t, box, 1)
				sent, err := box.SendFenced(t.Context(), holder, mailbox.Outgoing{To: "work"})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answered := make(chan error, 1)
				go func() {
					_, err := box.AwaitSent(ctx, holder, sent.ID)
					answered <- err
				}()
				synctest.Wait()
				if _, err := box.Leave(t.Context(), holder, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("SIGKILL") },
					mailbox.Event{Kind: "exited"}); err != nil {
					t.Fatal(err)
				}
				end(box, sent.ID, cancel)
				if err := <-answered; !refusal.Has(err, refusal.ActorLeaseLost) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// A time that is up before anything was looked at, on a machine that is busy, is a time
// that is up: who waits is told how the message stands, or why it may not know. Look with
// the context of the wait and this fails: such a worker was told of message m0, in no
// state, also where it is to be refused.
func TestAwaitSent_WhoseTimeIsUpBeforeItLooks(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	work, other := h.MustBegin(t, "work", 1), h.MustBegin(t, "other", 1)
	sent, err := h.Box.SendFenced(t.Context(), work, mailbox.Outgoing{To: "work"})
	if err != nil {
		t.Fatal(err)
	}
	up, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := h.Box.AwaitSent(up, work, sent.ID); d.ID != sent.ID || d.State != mailbox.New || !errors.Is(err, context.Canceled) {
		t.Errorf("its sender: %s is %s, %v", d.ID, d.State, err)
	}
	if _, err := h.Box.AwaitSent(up, other, sent.ID); !refusal.Has(err, refusal.PermissionDenied) {
		t.Errorf("another actor: %v", err)
	}
	if _, err := h.Box.AwaitSent(up, work, sent.ID+1000); !refusal.Has(err, refusal.MessageMissing) {
		t.Errorf("no message: %v", err)
	}
}

// Who waits for a message that has failed, and is then removed, learns how its last
// attempt ended: nothing is left by which it could ask. Have drop tell nothing of what it
// removes and this fails.
func TestAwait_OfWhatIsGoneKnowsItsLastReceipt(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		holder := begin(t, box, 1)
		sent, err := box.SendFenced(t.Context(), holder, mailbox.Outgoing{To: "work"})
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			known mailbox.Detail
			err   error
		}
		answered := make(chan answer, 1)
		go func() {
			d, err := box.AwaitSent(t.Context(), holder, sent.ID)
			answered <- answer{d, err}
		}()
		synctest.Wait()
		claimed, err := box.Claim(t.Context(), holder, mailbox.ClaimRequest{ID: sent.ID})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Settle(t.Context(), holder, mailboxtest.RefOf(claimed[0]), mailboxtest.Failed("not now"), nil); err != nil {
			t.Fatal(err)
		}
		if err := box.Drop(t.Context(), sent.ID); err != nil {
			t.Fatal(err)
		}
		got := <-answered
		if !refusal.Has(got.err, refusal.MessageMissing) {
			t.Fatalf("%+v", got)
		}
		if r := got.known.Receipts; len(r) != 1 || r[0].Reason != "not now" || got.known.Attempts != 1 {
			t.Errorf("what is known of it is %+v", got.known)
		}
	})
}
