package mailbox_test

import (
	"context"
	"testing"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// P3.6, P2.4: a task that completes its message itself, over the socket, has had
// its say. Its exit, whatever the status, adds no second receipt and no
// stale_completion, and the lease goes.
func TestEndTask_AfterItsOwnSettle(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := context.Background()
	id := h.MustSend(t, "work", "body")
	slot, p := fence.Slot{Actor: "work", Number: 1}, fence.NewProcess()
	lease, d, err := h.Box.StartTask(ctx, slot, p, 30e9)
	if err != nil {
		t.Fatal(err)
	}
	ref := mailboxtest.RefOf(d)
	h.MustSettle(t, lease.Holder(), ref, mailboxtest.Completed("said by itself"))
	out, err := h.Box.EndTask(ctx, lease.Holder(), ref, mailbox.Outcome{Verdict: mailbox.FailAttempt,
		Category: mailbox.CategoryExitStatus, ExitCode: 7, Reason: "and then it stumbled"})
	if err != nil || out.State != mailbox.Done || !out.Repeated {
		t.Fatalf("got %+v, %v", out, err)
	}
	got := h.MustShow(t, id)
	if len(got.Receipts) != 1 || string(got.Result) != "said by itself" {
		t.Errorf("the message is %+v", got)
	}
	evs, _, err := h.Box.Events(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		if ev.Kind == mailbox.EventStaleCompletion {
			t.Errorf("the journal says %+v", ev)
		}
	}
	if err := h.Leases.Release(ctx, lease.Holder()); !refusal.Has(err, refusal.ActorLeaseLost) {
		t.Errorf("the lease is still there: %v", err)
	}
}
