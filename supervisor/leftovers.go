package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// EndLeftovers ends every process that a dead supervisor of this store left
// (P4.9), before anything is started or recovered. A process is ended only where
// it is proved to be the one on record: by number, start time, boot and
// namespace; by its cgroup; or by an identity of this store in its
// environment. Call it with the store's lock held.
//
// It returns how many processes it ended, and the slots of which something does
// not die, with the reason: nothing is to be started in those.
func EndLeftovers(ctx context.Context, host *process.Host, leases *fence.Leases, data string) (ended int, stuck map[fence.Slot]error, err error) {
	recs := records(filepath.Join(data, "runs", "live"))
	found, damaged := recs.all()
	held, err := leases.List(ctx)
	if err != nil {
		return 0, nil, err
	}
	marks := map[string]fence.Slot{}
	for slot, rec := range found {
		marks[string(rec.Process)] = slot
	}
	for _, l := range held {
		if l.Err == nil {
			marks[string(l.Lease.Process)] = l.Slot
		}
	}
	stuck = map[fence.Slot]error{}
	if len(marks) == 0 {
		return 0, stuck, damaged
	}
	counts, faults := make(chan int, len(found)), make(chan leftoverFault, len(found))
	var group errgroup.Group
	group.SetLimit(16)
	for slot, rec := range found {
		group.Go(func() error {
			n, err := host.EndLeftover(ctx, rec.Identity, "", rec.Cgroup)
			counts <- n
			if err != nil {
				faults <- leftoverFault{slot, err}
			}
			return nil
		})
	}
	_ = group.Wait()
	close(counts)
	close(faults)
	for n := range counts {
		ended += n
	}
	problems := []error{damaged}
	for f := range faults {
		if _, ok := errors.AsType[*process.StuckError](f.err); !ok {
			problems = append(problems, fmt.Errorf("end the leftover of %s: %w", f.slot, f.err))
			continue
		}
		stuck[f.slot] = f.err
		delete(marks, string(found[f.slot].Process)) // it is known, and would be waited for again
	}
	n, err := host.EndMarked(ctx, func(mark string) bool { _, ours := marks[mark]; return ours })
	ended += n
	if err != nil {
		problems = append(problems, fmt.Errorf("end leftovers: %w", err))
	}
	for slot := range found {
		if stuck[slot] == nil {
			recs.drop(slot)
		}
	}
	return ended, stuck, errors.Join(problems...)
}

type leftoverFault struct {
	slot fence.Slot
	err  error
}

// recover ends leftovers and recovers what is on record. It returns the slots in
// which nothing may be started yet.
func (sup *Supervisor) recover(ctx context.Context) (map[fence.Slot]error, error) {
	ended, stuck, err := EndLeftovers(ctx, sup.host, sup.box.Leases(), sup.data)
	if err != nil {
		sup.log.Warn("leftovers", "err", err)
	}
	if ended > 0 {
		sup.log.Warn("processes of a dead supervisor ended", "count", ended)
		sup.box.Note(mailbox.Event{Kind: eventLeftover, Text: fmt.Sprintf("ended %d of the processes that a dead supervisor left", ended)})
	}
	report, err := sup.recovery.Reconcile(ctx)
	if !report.Empty() {
		sup.log.Info("recovered what was on record", "attempts", len(report.Recovered)+len(report.Swept), "leases", len(report.Released),
			"workspaces", len(report.Workspaces))
	}
	if err != nil {
		return nil, err
	}
	return stuck, nil
}

// holdLeftover keeps a slot stuck for as long as something of its last process
// does not die.
func (sup *Supervisor) holdLeftover(name fence.Slot, why error) {
	a, err := sup.actor(name.Actor)
	if err != nil || name.Number > len(a.slots) {
		sup.log.Error("leftover does not die", "slot", name.String(), "err", why)
		return
	}
	s := a.slots[name.Number-1]
	s.post(func() {
		s.life = life{at: stuck}
		s.history.trouble = refusal.New(refusal.Failed, why.Error(), "a dead supervisor left it",
			"find out what it waits for (ps -o stat,wchan), or restart the machine")
		s.sup.noteSlot(s, eventStuck, why.Error())
		s.publish()
	})
	sup.job(func(ctx context.Context) {
		found, _ := sup.records.all()
		rec := found[name]
		for wait := insistFirst; ; wait = min(2*wait, time.Minute) {
			if !pause(ctx, wait) {
				return
			}
			if _, err := sup.host.EndLeftover(ctx, rec.Identity, string(rec.Process), rec.Cgroup); err == nil {
				break
			}
		}
		s.post(func() {
			s.sup.noteSlot(s, eventUnstuck, "")
			s.proceed(after{asked: true}, nil)
		})
	})
}
