package mailbox

import (
	"context"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// maxLeave bounds the attempts ended by one transaction of Leave.
const maxLeave = 7

// Leave ends all that a process held: it releases its lease and ends each of its
// attempts with outcome(ref), recording ev, in transactions of bounded size.
//
// The first transaction releases the lease: from then on a process that lives
// on can settle nothing that a later one gives back. A crash in between leaves
// claims whose lease is not current, which recovery ends. Leave is idempotent:
// what has ended is left alone, so there is one receipt per start (P4.4). The
// caller has ended the process and its tree. It returns what it ended.
func (b *Box) Leave(ctx context.Context, h fence.Holder, outcome func(Ref) Outcome, ev Event) ([]Ref, error) {
	return b.leave(ctx, h, outcome, ev, nil)
}

// leave is Leave. What also, nil = nothing, writes is stored with the first attempts or
// not at all; its error is returned then, and nothing has ended.
func (b *Box) leave(ctx context.Context, h fence.Holder, outcome func(Ref) Outcome, ev Event, also func(store.Tx) error) ([]Ref, error) {
	at := b.wall().UTC()
	ev.At, ev.Actor, ev.Slot, ev.Process, ev.Token = at, h.Slot.Actor, h.Slot.Number, h.Process, h.Token
	// 1. Release the lease, together with the first attempts. A crash after it
	// leaves the others with a lease that is not current.
	held, err := b.heldBy(ctx, h)
	if err != nil {
		return nil, err
	}
	first := maxLeave
	if also != nil {
		first-- // room for what it writes
	}
	ended, err := b.leaveStep(ctx, h, held[:min(len(held), first)], outcome, &ev, also)
	if err != nil {
		return ended, err
	}
	b.leases.Drop(h.Slot, h.Token)
	// 2. Nothing new can be granted now. What was granted a moment ago may not
	// be in the index yet.
	b.grants.wait(h.Process)
	if held, err = b.heldBy(ctx, h); err != nil {
		return ended, err
	}
	// 3. The others.
	for step := range slices.Chunk(held, maxLeave) {
		more, err := b.leaveStep(ctx, h, step, outcome, nil, nil)
		ended = append(ended, more...)
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// leaveStep ends the attempts of step in one transaction. With ev it releases
// the lease first, and records ev if there was anything to end; also, nil = nothing, comes
// last, and is not essential.
func (b *Box) leaveStep(ctx context.Context, h fence.Holder, step []Ref, outcome func(Ref) Outcome, ev *Event, also func(store.Tx) error) (ended []Ref, err error) {
	m := b.moment()
	var ends []ending
	if also == nil {
		ctx = store.Essential(ctx)
	}
	err = b.store.Update(ctx, func(tx store.Tx) error {
		ends = ends[:0]
		gone := false
		if ev != nil {
			err := b.leases.ReleaseTx(tx, h)
			gone = refusal.Has(err, refusal.ActorLeaseLost)
			if err != nil && !gone && !refusal.Has(err, refusal.LeaseCorrupt) {
				return err
			}
		}
		for _, ref := range step {
			rec, err := b.get(tx, ref.ID)
			if err != nil {
				b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
				continue
			}
			if rec == nil || rec.state != Claimed || rec.claim.token != ref.Token || rec.claim.process != h.Process {
				continue
			}
			e, err := b.endTx(tx, rec, outcome(ref), 0, m)
			if err != nil {
				return err
			}
			ends = append(ends, e)
		}
		// A pass that is repeated finds nothing, and says nothing (P4.4).
		if ev != nil && ev.Kind != "" && (!gone || len(ends) > 0) {
			b.eventTx(tx, *ev)
		}
		if also != nil {
			return also(tx)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, ref := range step {
		b.index.ended(ref) // also what had ended already
	}
	b.journal.appended()
	for _, e := range ends {
		ended = append(ended, e.ref)
		if _, err := b.settled(ctx, e); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// Withhold says that p is being ended, which may take long: what it has claimed
// is handed out to nobody, expired or not, before Leave or EndTask has ended it
// (P4.5). It is forgotten with the process that calls it.
func (b *Box) Withhold(p fence.Process) { b.index.withhold(p) }

// Held returns the claims that process p holds, by message id.
func (b *Box) Held(p fence.Process) []Ref { return b.index.heldBy(p, "") }

// heldBy is Held; without the index it reads the claims on record.
func (b *Box) heldBy(ctx context.Context, h fence.Holder) ([]Ref, error) {
	if b.index.isLoaded() {
		return b.index.heldBy(h.Process, ""), nil
	}
	all, err := b.Claims(ctx)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, c := range all {
		if c.Holder.Process == h.Process {
			out = append(out, c.Ref)
		}
	}
	return out, nil
}

// An OpenClaim is one attempt on record that has not ended.
type OpenClaim struct {
	Ref       Ref
	Holder    fence.Holder
	Attempt   int
	ExpiresAt fence.Instant
	Auto      bool // kept while its process lives: ExpiresAt says nothing of a death
	Live      bool // unexpired, and under its slot's current lease
}

// Claims returns every attempt on record that has not ended, by message id. It
// reads the records of the blocks that have some.
func (b *Box) Claims(ctx context.Context) ([]OpenClaim, error) {
	var out []OpenClaim
	err := b.store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		now := b.leases.Now()
		b.scanClaims(r, func(rec *record) {
			live, err := b.liveTx(r, rec, now)
			out = append(out, OpenClaim{Ref: rec.ref(), Holder: rec.holder(), Attempt: rec.attempt,
				ExpiresAt: rec.claim.expiresAt, Auto: rec.claim.auto, Live: live && err == nil})
		})
		return nil
	})
	return out, err
}
