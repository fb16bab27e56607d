package mailbox_test

import (
	"context"
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
