package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Recovery ends what dead processes left in one mailbox.
type Recovery struct {
	box        *mailbox.Box
	workspaces Workspaces
	log        *slog.Logger

	reconciled chan struct{} // closed once a pass was made
	once       sync.Once
}

// New returns the recovery of a mailbox and the workspaces beside it. log nil
// discards.
func New(box *mailbox.Box, workspaces Workspaces, log *slog.Logger) *Recovery {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Recovery{box: box, workspaces: workspaces, log: log, reconciled: make(chan struct{})}
}

// Workspaces returns the workspaces that it reclaims.
func (r *Recovery) Workspaces() Workspaces { return r.workspaces }

// Died ends what a process held whose end was observed: its lease is released,
// each attempt that it still held ends with o, and ev is recorded. It is called
// after the process and its whole tree are gone (P4.5), and may be repeated:
// what has ended is left alone (P4.4). It returns the attempts that it ended.
func (r *Recovery) Died(ctx context.Context, h fence.Holder, o mailbox.Outcome, ev mailbox.Event) ([]mailbox.Ref, error) {
	return r.DiedWith(ctx, h, func(mailbox.Ref) mailbox.Outcome { return o }, ev)
}

// DiedWith is Died where the attempts of one process end differently: the one
// whose time was up as timeout, its neighbours as worker_lost.
func (r *Recovery) DiedWith(ctx context.Context, h fence.Holder, outcome func(mailbox.Ref) mailbox.Outcome, ev mailbox.Event) ([]mailbox.Ref, error) {
	return r.box.Leave(context.WithoutCancel(ctx), h, outcome, ev)
}

// DiedWithSuccessor is DiedWith where the process has a successor at once, whose lease it
// returns: see mailbox.Box.LeaveTo.
func (r *Recovery) DiedWithSuccessor(ctx context.Context, h fence.Holder, outcome func(mailbox.Ref) mailbox.Outcome, ev mailbox.Event, next mailbox.Successor) (fence.Lease, error) {
	return r.box.LeaveTo(context.WithoutCancel(ctx), h, outcome, ev, next)
}

// A Report says what a pass did.
type Report struct {
	ExpiredLeases []fence.Record
	DamagedLeases []fence.Record
	Swept         []mailbox.Ref
	Recovered     []mailbox.Ref
	Released      []fence.Slot
	Kept          []fence.Holder // of whom something lives: see Abandoned
	Workspaces    []string
}

// Empty reports whether the pass found nothing to do.
func (r Report) Empty() bool {
	return len(r.ExpiredLeases)+len(r.DamagedLeases)+len(r.Swept)+len(r.Recovered)+len(r.Released)+len(r.Kept)+len(r.Workspaces) == 0
}

// Reconcile makes one pass over all that is on record, in the order of P5, and
// says what it did. The caller holds the store's lock and has ended the
// leftovers of the dead supervisor: every attempt on record is abandoned, except
// those of the processes alive, of which something could not be ended: their leases
// and claims are left as they are, and end with Abandoned once nothing of them is
// left (P4.5). nil = none is. A second pass finds nothing.
func (r *Recovery) Reconcile(ctx context.Context, alive map[fence.Process]bool) (Report, error) {
	var out Report
	// With the index each process's claims are found without reading them all.
	if err := r.box.Load(ctx); err != nil {
		return out, fmt.Errorf("read the mailbox: %w", err)
	}
	leases, err := r.box.Leases().List(ctx)
	if err != nil {
		return out, fmt.Errorf("read the leases: %w", err)
	}
	claims, err := r.box.Claims(ctx)
	if err != nil {
		return out, fmt.Errorf("read the claims: %w", err)
	}
	leased := map[fence.Process]bool{}
	for _, l := range leases {
		leased[l.Lease.Process] = l.Err == nil
	}
	plan := Decide(Found{Leases: leases, Claims: claims, Alive: alive}, r.box.Leases().Now())
	out.ExpiredLeases, out.DamagedLeases, out.Kept = plan.Report, plan.Damage, plan.Keep
	for _, h := range plan.Keep {
		r.box.Withhold(h.Process)
	}

	for _, ref := range plan.Sweep {
		swept, err := r.box.Sweep(ctx, ref)
		if err != nil {
			return out, fmt.Errorf("sweep message %s: %w", ref.ID, err)
		}
		if swept {
			out.Swept = append(out.Swept, ref)
		}
	}
	for _, h := range plan.Leave {
		ended, err := r.Abandoned(ctx, h)
		out.Recovered = append(out.Recovered, ended...)
		if err != nil {
			return out, fmt.Errorf("recover %s: %w", h.Slot, err)
		}
		if leased[h.Process] {
			out.Released = append(out.Released, h.Slot)
		}
	}
	reclaimed, err := r.reclaim(ctx)
	out.Workspaces = reclaimed
	r.once.Do(func() { close(r.reconciled) })
	return out, err
}

// Adopted stands for a first pass where there is nothing to reconcile: whoever holds
// what is on record lives, and is looked after by this program as it was by the one
// before.
func (r *Recovery) Adopted() { r.once.Do(func() { close(r.reconciled) }) }

// Abandoned is Died for a process whose supervisor ended before it did: nobody
// saw how it ended, so its attempts are lost (P4.2).
func (r *Recovery) Abandoned(ctx context.Context, h fence.Holder) ([]mailbox.Ref, error) {
	lost := mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryWorkerLost, ExitCode: -1,
		Reason: "its supervisor ended before it did; how it ended is not known"}
	return r.Died(ctx, h, lost, mailbox.Event{Kind: protocol.EventRecovered, Category: string(mailbox.CategoryWorkerLost),
		Text: "found on record after its supervisor had ended"})
}

// reclaim removes the workspaces of attempts that have ended. One that cannot be
// removed is logged and left for a later pass.
func (r *Recovery) reclaim(ctx context.Context) (removed []string, err error) {
	list, err := r.workspaces.List()
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	var found []FoundWorkspace
	for _, w := range list {
		f := FoundWorkspace{Workspace: w}
		d, err := r.box.Show(ctx, w.Message)
		switch {
		case refusal.Has(err, refusal.MessageMissing):
			f.Gone = true
		case err != nil:
			r.log.Error("workspace left alone", "path", w.Path, "err", err)
			continue
		default:
			f.Open = d.Claim != nil && d.Claim.Attempt == w.Attempt
			for _, rc := range d.Receipts {
				f.Completed = f.Completed || rc.Attempt == w.Attempt && rc.Status == mailbox.Completed
			}
			if a, err := r.box.Actor(d.To); err == nil {
				f.Reclaim = a.Reclaim
			}
		}
		found = append(found, f)
	}
	for _, w := range Reclaimable(found) {
		if err := r.workspaces.Remove(w); err != nil {
			r.log.Error("workspace not removed", "path", w.Path, "err", err)
			r.box.Note(mailbox.Event{Kind: protocol.EventWorkspaceKept, Message: w.Message, Attempt: w.Attempt, Text: err.Error()})
			continue
		}
		removed = append(removed, w.Path)
	}
	return removed, nil
}

// Run sweeps claims at the exact moment that they expire, until ctx ends, and
// returns ctx's cause; an error of the store ends it earlier. It waits for the
// first pass of Reconcile: before it, who holds an expired claim may be a leftover
// that has not been ended yet (P4.5).
func (r *Recovery) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.reconciled:
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		at, ok, changed := r.box.NextExpiry()
		var fire <-chan time.Time
		if ok {
			left := time.Duration(at - r.box.Leases().Now())
			if left <= 0 {
				if err := r.sweep(ctx); err != nil {
					return err
				}
				continue
			}
			timer.Reset(left)
			fire = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-fire:
		}
	}
}

func (r *Recovery) sweep(ctx context.Context) error {
	_, err := r.box.SweepExpired(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return context.Cause(ctx)
	case refusal.Has(err, refusal.DiskFull):
		// Settles come back by themselves once there is room; so does this.
		r.log.Error("expired claims not swept", "err", err)
		return sleep(ctx, time.Second)
	default:
		return fmt.Errorf("sweep expired claims: %w", err)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
