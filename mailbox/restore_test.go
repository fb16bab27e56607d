package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// claimed is a house with twenty claims of one process, of which the first has
// thirty staged sends, the second is cancelled, and one more message that waits.
func claimed(t *testing.T) (h *mailboxtest.House, a fence.Holder, refs []mailbox.Ref) {
	ctx := context.Background()
	h = mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	for range 21 {
		if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work"}); err != nil {
			t.Fatal(err)
		}
	}
	a = h.MustBegin(t, "work", 1)
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Max: 20})
	if err != nil || len(got) != 20 {
		t.Fatalf("%d claims: %v", len(got), err)
	}
	for _, d := range got {
		refs = append(refs, mailbox.Ref{ID: d.ID, Token: d.Token})
	}
	for range 30 {
		if _, err := h.Box.Stage(ctx, a, refs[0], mailbox.Outgoing{To: "other", Key: ""}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Box.Cancel(ctx, refs[1].ID); err != nil {
		t.Fatal(err)
	}
	return h, a, refs
}

// mustBeParked checks what P7 says of each claim of before.
func mustBeParked(t *testing.T, h *mailboxtest.House, a fence.Holder, refs []mailbox.Ref) {
	t.Helper()
	ctx := context.Background()
	for _, ref := range refs {
		d, err := h.Box.Show(ctx, ref.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d.State != mailbox.Parked || d.Attempts != 1 || len(d.Receipts) != 1 {
			t.Fatalf("message %s: %s, %d charges, %d receipts", ref.ID, d.State, d.Attempts, len(d.Receipts))
		}
		r := d.Receipts[0]
		if r.Token != ref.Token || r.Category != mailbox.CategoryWorkerLost || r.Status != mailbox.Failed || !r.Counted || r.ByWorker || r.Reason == "" {
			t.Fatalf("message %s: receipt %+v", ref.ID, r)
		}
		if err := settle(h, a, ref, mailboxtest.Completed("r")); err == nil {
			t.Fatalf("message %s: a token of before still settles it", ref.ID)
		}
	}
	for actor, want := range map[string]mailbox.Counts{"work": {New: 1, Parked: 20}, "other": {}} {
		if c, err := h.Box.Counts(ctx, actor); err != nil || c != want {
			t.Errorf("%s: %+v, want %+v: %v", actor, c, want, err)
		}
	}
}

// P7, mistake 11: in a new epoch each claim becomes PARKED, whatever its actor's policy and
// whether it was to be cancelled, with one receipt and one charge; its staged sends
// are gone; what waited waits. In the same epoch nothing happens, nor a second time.
func TestParkRestored_ParksEachClaimOnce(t *testing.T) {
	ctx := context.Background()
	h, a, refs := claimed(t)
	if parked, err := h.Box.ParkRestored(ctx, h.DB.Epoch()); err != nil || parked != nil {
		t.Fatalf("in the first epoch: %v, %v", parked, err)
	}
	parked, err := h.Box.ParkRestored(ctx, 7)
	if err != nil || !slices.Equal(parked, refs) {
		t.Fatalf("parked %v, want %v: %v", parked, refs, err)
	}
	mustBeParked(t, h, a, refs)
	// A later claim in that epoch is left alone, also after a restart; the next
	// epoch takes it.
	if _, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); err != nil {
		t.Fatal(err)
	}
	h.Reopen(t)
	if parked, err := h.Box.ParkRestored(ctx, 7); err != nil || parked != nil {
		t.Errorf("again: %v, %v", parked, err)
	}
	if parked, err := h.Box.ParkRestored(ctx, 8); err != nil || len(parked) != 1 {
		t.Errorf("in the next epoch: %v, %v", parked, err)
	}
}

// P7: a crash after each of the writes of parking leaves the rest to the next
// opening; no claim gets two receipts and none is left. Record the epoch first, and
// this fails.
func TestParkRestored_CrashAfterEveryWrite(t *testing.T) {
	ctx := context.Background()
	for _, stored := range []bool{false, true} {
		for n := 0; ; n++ {
			h, a, refs := claimed(t)
			l := &liar{n: -1}
			h.Wrap = l.wrap
			h.Reopen(t)
			l.arm(n, stored)
			_, err := h.Box.ParkRestored(ctx, 7)
			if !l.hasLied() {
				if err != nil {
					t.Fatal(err)
				}
				if n < 4 {
					t.Errorf("parking took only %d writes", n)
				}
				break
			}
			h.Wrap = nil
			h.Reopen(t)
			if _, err := h.Box.ParkRestored(ctx, 7); err != nil {
				t.Fatal(err)
			}
			mustBeParked(t, h, a, refs)
			h.Verify(t)
		}
	}
}

// fullDisk is a commit hook of a disk without room for any but essential updates.
type fullDisk struct {
	store.Store
	full bool
}

func (f *fullDisk) Update(ctx context.Context, fn func(store.Tx) error) error {
	if !f.full || store.IsEssential(ctx) {
		return f.Store.Update(ctx, fn)
	}
	return f.Store.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return refusal.New(refusal.DiskFull, "commit to the store", "injected", "").Later().
			Because(&fs.PathError{Op: "write", Err: syscall.ENOSPC})
	})
}

// H1: on a full disk a send is refused, disk_full, a claim too; every end of an
// attempt, every removal and every recovery is essential and goes through. Forget to
// mark one and it is refused here.
func TestFullDisk_EndsGoThrough(t *testing.T) {
	ctx := context.Background()
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	disk := &fullDisk{}
	h.Wrap = func(s store.Store) store.Store { disk.Store = s; return disk }
	h.Reopen(t)
	a := h.MustBegin(t, "work", 1)
	for range 12 {
		if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{Max: 9})
	if err != nil || len(got) != 9 {
		t.Fatal(err)
	}
	ref := func(i int) mailbox.Ref { return mailbox.Ref{ID: got[i].ID, Token: got[i].Token} }
	task, d, err := h.Box.StartTask(ctx, fence.Slot{Actor: "work", Number: 2}, fence.NewProcess(), 0+mailboxtest.Actor("work").ClaimTTL)
	if err != nil {
		t.Fatal(err)
	}
	disk.full = true
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work"}); !refusal.Has(err, refusal.DiskFull) {
		t.Errorf("send: %v", err)
	}
	if _, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{}); !refusal.Has(err, refusal.DiskFull) {
		t.Errorf("claim: %v", err)
	}
	if _, err := h.Box.Settle(ctx, a, ref(0), mailboxtest.Completed("r"), []mailbox.Outgoing{{To: "work"}}); !refusal.Has(err, refusal.DiskFull) {
		t.Errorf("complete with sends: %v", err)
	}
	var problems []string
	must := func(what string, err error) {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", what, err))
		}
	}
	must("complete", settle(h, a, ref(0), mailboxtest.Completed("r")))
	must("fail", settle(h, a, ref(1), mailboxtest.Failed("r")))
	must("release", settle(h, a, ref(2), mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased}))
	_, _, err = h.Box.Renew(ctx, a, ref(3), new("half"))
	must("renew", err)
	_, err = h.Box.Cancel(ctx, ref(4).ID)
	must("cancel", err)
	_, err = h.Box.EndCancelled(ctx, a, ref(4))
	must("end what is cancelled", err)
	must("drop", h.Box.Drop(ctx, ref(0).ID))
	_, err = h.Box.EndTask(ctx, fence.Holder{Slot: fence.Slot{Actor: "work", Number: 2}, Process: task.Process, Token: task.Token},
		mailbox.Ref{ID: d.ID, Token: d.Token}, mailboxtest.Completed("r"))
	must("end a task", err)
	h.Advance(mailboxtest.Actor("work").ClaimTTL + 1)
	swept, err := h.Box.SweepExpired(ctx)
	must("sweep", err)
	if len(swept) == 0 {
		must("sweep", errors.New("nothing was swept"))
	}
	_, err = h.Box.Leave(ctx, a, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{Kind: "exited"})
	must("leave", err)
	_, err = h.Box.ParkRestored(ctx, 5)
	must("park", err)
	if len(problems) > 0 {
		t.Errorf("on a full disk:\n%s", strings.Join(problems, "\n"))
	}
	disk.full = false
	if _, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work"}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
