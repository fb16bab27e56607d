package mailbox_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
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
		if ev.Kind == protocol.EventStaleCompletion {
			t.Errorf("the journal says %+v", ev)
		}
	}
	if err := h.Leases.Release(ctx, lease.Holder()); !refusal.Has(err, refusal.ActorLeaseLost) {
		t.Errorf("the lease is still there: %v", err)
	}
}

// A task whose message cannot be read any more ends all the same: that is logged, and
// its lease goes, or its slot would be held for ever. Return the damage from
// EndTask's transaction and this fails.
func TestEndTask_OfADamagedMessage(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := t.Context()
	id := h.MustSend(t, "work", "body")
	slot := fence.Slot{Actor: "work", Number: 1}
	lease, d, err := h.Box.StartTask(ctx, slot, fence.NewProcess(), 30e9)
	if err != nil {
		t.Fatal(err)
	}
	var key, was []byte
	err = h.Store.Update(ctx, func(tx store.Tx) error {
		tx.Scan([]byte{mailbox.SpaceOpen}, nil, func(k, v []byte) bool { key, was = bytes.Clone(k), bytes.Clone(v); return false })
		tx.Put(key, []byte("damage"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Box.EndTask(ctx, lease.Holder(), mailboxtest.RefOf(d), mailboxtest.Completed("")); err != nil {
		t.Errorf("it was refused: %v", err)
	}
	if err := h.Store.Update(ctx, func(tx store.Tx) error { tx.Put(key, was); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := h.MustShow(t, id); len(d.Receipts) != 0 {
		t.Errorf("something was recorded of it: %+v", d.Receipts)
	}
	if _, err := h.Leases.Reset(ctx, slot); err != nil {
		t.Errorf("its slot is held: %v", err)
	}
	h.MustSend(t, "work", "next")
	if _, _, err := h.Box.StartTask(ctx, slot, fence.NewProcess(), 30e9); err != nil {
		t.Errorf("the slot cannot be used again: %v", err)
	}
}

// P4.5: the claims of a process that is being ended are handed out to nobody, expired
// or not, until it has left. Leave out withhold in expireAt, or in claimTx, and this
// fails.
func TestWithhold(t *testing.T) {
	a := mailboxtest.Actor("work")
	a.Auto = false
	h := mailboxtest.Open(t, a)
	ctx := t.Context()
	id := h.MustSend(t, "work", "body")
	dying, other := h.MustBegin(t, "work", 1), h.MustBegin(t, "work", 2)
	h.MustClaim(t, dying, id)
	h.Box.Withhold(dying.Process)
	h.Advance(time.Hour)
	if _, ok, _ := h.Box.NextExpiry(); ok {
		t.Error("its expiry is waited for")
	}
	if swept, err := h.Box.SweepExpired(ctx); err != nil || len(swept) != 0 {
		t.Errorf("swept %v, %v", swept, err)
	}
	if _, err := h.Box.Claim(ctx, other, mailbox.ClaimRequest{ID: id}); !refusal.Has(err, refusal.MessageNotClaimable) {
		t.Errorf("another one's claim: %v", err)
	}
	lost := func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }
	if ended, err := h.Box.Leave(ctx, dying, lost, mailbox.Event{}); err != nil || len(ended) != 1 {
		t.Errorf("ended %v, %v", ended, err)
	}
	h.Advance(time.Hour)
	if got, err := h.Box.Claim(ctx, other, mailbox.ClaimRequest{}); err != nil || len(got) != 1 {
		t.Errorf("claimed %v, %v", got, err)
	}
}
