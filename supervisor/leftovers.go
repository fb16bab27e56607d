package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// Leftovers is what was found of a dead supervisor.
type Leftovers struct {
	Ended int        // processes that lived, and do not any more
	Stuck []Leftover // what could not be ended
}

// A Leftover is one process of a dead supervisor of which something does not end.
// Nothing is to be started in its slot, and what it holds stays its own, until it
// has ended (P4.5).
type Leftover struct {
	Slot fence.Slot
	Err  error // why, a process.StuckError

	rec record // without an identity where only its mark is known
}

// Alive are the processes of which something could not be ended.
func (l Leftovers) Alive() map[fence.Process]bool {
	out := map[fence.Process]bool{}
	for _, s := range l.Stuck {
		out[s.rec.Process] = true
	}
	return out
}

// EndLeftovers ends every process that a dead supervisor of this store left
// (P4.9), before anything is started or recovered. A process is ended only where
// it is proved to be the one on record: by number, start time, boot and
// namespace; by its cgroup; or by an identity of this store in its
// environment. Call it with the store's lock held.
//
// A store can be a copy, restored beside the one that it was made of. What is on record
// there and lives under the supervisor of that one is not left over: it is left alone,
// which is logged, and its leases and claims of this store are recovered.
//
// What does not die, or may not be killed, is in Stuck, and is on record still
// when it returns. An error says that it is not known whether something lives:
// then nothing may be recovered or started. Records that a crash left half
// written are logged and removed: the lease tells of their process too.
func EndLeftovers(ctx context.Context, host *process.Host, leases *fence.Leases, data string, log *slog.Logger) (Leftovers, error) {
	recs := records(filepath.Join(data, "runs", "live"))
	found, damaged, err := recs.all()
	if err != nil {
		return Leftovers{}, err
	}
	held, err := leases.List(ctx)
	if err != nil {
		return Leftovers{}, err
	}
	marks := map[string]fence.Slot{}
	for slot, rec := range found {
		marks[string(rec.Process)], marks[probeMark(rec.Process)] = slot, slot
	}
	for _, l := range held {
		if l.Err == nil {
			marks[string(l.Lease.Process)], marks[probeMark(l.Lease.Process)] = l.Slot, l.Slot
		}
	}
	var out Leftovers
	if err := spareTended(host, found, marks, log); err != nil {
		return out, err
	}
	if len(marks) > 0 {
		if out, err = endFound(ctx, host, found, marks); err != nil {
			return out, err
		}
	}
	alive := out.Alive()
	for slot, rec := range found {
		if !alive[rec.Process] {
			recs.drop(slot)
		}
	}
	for _, d := range damaged {
		log.Warn("damaged record of a process removed", "path", d.path, "err", d.why)
		_ = os.Remove(d.path)
	}
	return out, nil
}

// spareTended takes out of found and marks what a living supervisor looks after.
func spareTended(host *process.Host, found map[fence.Slot]record, marks map[string]fence.Slot, log *slog.Logger) error {
	if len(marks) == 0 {
		return nil
	}
	tended, err := host.Tended(func(mark string) bool { _, ours := marks[mark]; return ours })
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	supervisors := map[int]int{} // by PID: how many of them it looks after
	for mark, by := range tended {
		slot := marks[mark]
		if string(found[slot].Process) == mark {
			delete(found, slot)
		}
		delete(marks, mark)
		supervisors[by]++
	}
	for pid, n := range supervisors {
		log.Warn("this store is a copy of one that is in use: processes that its supervisor looks after are left alone", "supervisor", pid, "processes", n)
	}
	return nil
}

// endFound ends what is on record as found, and then what bears one of marks.
func endFound(ctx context.Context, host *process.Host, found map[fence.Slot]record, marks map[string]fence.Slot) (out Leftovers, err error) {
	var mu sync.Mutex // guards out
	var group errgroup.Group
	group.SetLimit(16)
	for slot, rec := range found {
		group.Go(func() error {
			n, err := host.EndLeftover(ctx, rec.Identity, "", rec.Cgroup)
			mu.Lock()
			defer mu.Unlock()
			out.Ended += n
			if _, ok := errors.AsType[*process.StuckError](err); ok {
				out.Stuck = append(out.Stuck, Leftover{slot, err, rec})
			} else if err != nil {
				return fmt.Errorf("end the leftover of %s: %w", slot, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	for _, l := range out.Stuck {
		delete(marks, string(l.rec.Process)) // it is known, and would be waited for again
	}
	n, err := host.EndMarked(ctx, func(mark string) bool { _, ours := marks[mark]; return ours })
	out.Ended += n
	stuck, ok := errors.AsType[*process.StuckError](err)
	if err != nil && !ok {
		return out, fmt.Errorf("end leftovers: %w", err)
	}
	if ok {
		for _, mark := range stuck.Marks {
			slot := marks[mark]
			rec := record{Process: fence.Process(mark)}
			if found[slot].Process == rec.Process {
				rec = found[slot]
			}
			out.Stuck = append(out.Stuck, Leftover{slot, err, rec})
		}
	}
	return out, nil
}

// recover ends leftovers and recovers what is on record. It returns the slots in
// which nothing may be started yet.
func (sup *Supervisor) recover(ctx context.Context) (map[fence.Slot]error, error) {
	left, err := EndLeftovers(ctx, sup.host, sup.box.Leases(), sup.data, sup.log)
	if err != nil {
		return nil, refusal.New(refusal.Failed, "end what a dead supervisor left", err.Error(),
			"nothing was started; repair that, or restart the machine, and run it again").Because(err)
	}
	if left.Ended > 0 {
		sup.log.Warn("processes of a dead supervisor ended", "count", left.Ended)
		sup.box.Note(mailbox.Event{Kind: protocol.EventLeftoverEnded, Text: fmt.Sprintf("ended %d of the processes that a dead supervisor left", left.Ended)})
	}
	report, err := sup.recovery.Reconcile(ctx, left.Alive())
	if !report.Empty() {
		sup.log.Info("recovered what was on record", "attempts", len(report.Recovered)+len(report.Swept), "leases", len(report.Released),
			"workspaces", len(report.Workspaces))
	}
	if err != nil {
		return nil, err
	}
	for _, h := range report.Kept {
		// As if it were a living child of ours: its lease does not run out.
		sup.box.Leases().Keep(h.Slot, h.Token)
	}
	sup.lingers = map[fence.Slot]chan struct{}{}
	stuck := map[fence.Slot]error{}
	for _, l := range left.Stuck {
		stuck[l.Slot] = l.Err
	}
	for slot := range stuck {
		gone := make(chan struct{})
		sup.lingers[slot] = gone
		sup.job(func(ctx context.Context) {
			if sup.endLingering(ctx, slot, left.Stuck, report.Kept) {
				close(gone)
			}
		})
	}
	return stuck, nil
}

// endLingering ends what is left in a slot, for as long as that takes, and then
// records its end. It reports whether it did before ctx ended; where it did not,
// the next start goes on.
func (sup *Supervisor) endLingering(ctx context.Context, slot fence.Slot, stuck []Leftover, kept []fence.Holder) bool {
	for _, l := range stuck {
		if l.Slot == slot && !sup.endStuck(ctx, l.rec) {
			return false
		}
	}
	for _, l := range stuck {
		for _, h := range kept {
			if l.Slot != slot || h.Process != l.rec.Process {
				continue
			}
			if !sup.insist(ctx, sup.log.With("actor", slot.Actor, "slot", slot.Number), h.Process, func(ctx context.Context) error {
				_, err := sup.recovery.Abandoned(ctx, h)
				return err
			}) {
				return false
			}
		}
	}
	sup.records.drop(slot)
	return true
}

// endStuck tries to end a leftover until it has ended, and reports whether it has
// before ctx ended.
func (sup *Supervisor) endStuck(ctx context.Context, rec record) bool {
	for wait := insistFirst; ; wait = min(2*wait, time.Minute) {
		if !pause(ctx, wait) {
			return false
		}
		if _, err := sup.host.EndLeftover(ctx, rec.Identity, string(rec.Process), rec.Cgroup); err == nil {
			return true
		}
	}
}

// haunt keeps a slot stuck for as long as something of its last process
// does not die. One that is not declared will be stuck if a reload ever makes it.
func (sup *Supervisor) haunt(name fence.Slot, why error) {
	a, err := sup.actor(name.Actor)
	if err != nil || name.Number > len(a.slots) {
		sup.log.Error("leftover does not die", "slot", name.String(), "err", why)
		sup.haunted[name] = why
		return
	}
	sup.keepStuck(a.slots[name.Number-1], why)
}

// keepStuck keeps s stuck until what a dead supervisor left of it has died.
func (sup *Supervisor) keepStuck(s *slot, why error) {
	s.post(func() {
		s.life = life{at: stuck}
		s.history.trouble = refusal.New(refusal.Failed, why.Error(), "a dead supervisor left it",
			"find out what it waits for (ps -o stat,wchan), or restart the machine")
		s.sup.noteSlot(s, protocol.EventStuck, why.Error())
		s.publish()
	})
	sup.job(func(ctx context.Context) {
		select {
		case <-sup.lingers[s.name]:
		case <-ctx.Done():
			return
		}
		s.post(func() {
			s.sup.noteSlot(s, protocol.EventUnstuck, "")
			s.proceed(after{asked: true}, nil)
		})
	})
}
