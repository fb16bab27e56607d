package mailbox

import (
	"context"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// maxLeave bounds the attempts ended by one transaction of Leave.
const maxLeave = 8

// Leave ends all that a process held: it releases its lease and ends each of its
// attempts with outcome(ref), recording ev, in transactions of bounded size.
//
// The first transaction releases the lease: from then on a process that lives
// on can settle nothing that a later one gives back. A crash in between leaves
// claims whose lease is not current, which recovery ends. Leave is idempotent:
// what has ended is left alone, so there is one receipt per start (P4.4). The
// caller has ended the process and its tree. It returns what it ended.
func (b *Box) Leave(ctx context.Context, h fence.Holder, outcome func(Ref) Outcome, ev Event) ([]Ref, error) {
	held, err := b.heldBy(ctx, h)
	if err != nil {
		return nil, err
	}
	at := b.wall().UTC()
	ev.At, ev.Actor, ev.Slot, ev.Process, ev.Token = at, h.Slot.Actor, h.Slot.Number, h.Process, h.Token
	steps := slices.Collect(slices.Chunk(held, maxLeave))
	if len(steps) == 0 {
		steps = [][]Ref{nil}
	}
	var ended []Ref
	for i, step := range steps {
		random := b.random()
		var ends []ending
		err := b.store.Update(ctx, func(tx store.Tx) error {
			ends = ends[:0]
			if i == 0 {
				err := b.leases.ReleaseTx(tx, h)
				if err != nil && !refusal.Has(err, refusal.ActorLeaseLost) && !refusal.Has(err, refusal.LeaseCorrupt) {
					return err
				}
				if ev.Kind != "" {
					b.eventTx(tx, ev)
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
				e, err := b.endTx(tx, rec, outcome(ref), 0, at, random)
				if err != nil {
					return err
				}
				ends = append(ends, e)
			}
			return nil
		})
		if err != nil {
			return ended, err
		}
		if i == 0 {
			b.leases.Drop(h.Slot, h.Token)
			b.journal.appended()
		}
		for _, e := range ends {
			ended = append(ended, e.ref)
			if _, err := b.settled(ctx, e); err != nil {
				return ended, err
			}
		}
	}
	return ended, nil
}

// Held returns the claims that process p holds, by message id.
func (b *Box) Held(p fence.Process) []Ref { return b.index.heldBy(p, "") }

// heldBy is Held; without the index it reads the open records.
func (b *Box) heldBy(ctx context.Context, h fence.Holder) ([]Ref, error) {
	b.index.mu.Lock()
	loaded := b.index.loaded
	b.index.mu.Unlock()
	if loaded {
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
	Live      bool // unexpired, and under its slot's current lease
}

// Claims returns every attempt on record that has not ended, by message id. It
// reads the open records.
func (b *Box) Claims(ctx context.Context) ([]OpenClaim, error) {
	var out []OpenClaim
	err := b.store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		now := b.leases.Now()
		r.Scan([]byte{spaceOpen}, nil, func(k, v []byte) bool {
			id, ok := parseIDKey(k)
			if !ok || len(v) < 2 || State(v[1]) != Claimed {
				return true
			}
			rec, err := decodeRecord(id, v, b.actors.name)
			if err != nil {
				b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
				return true
			}
			live, err := b.liveTx(r, rec, now)
			out = append(out, OpenClaim{Ref: rec.ref(), Holder: rec.holder(), Attempt: rec.attempt,
				ExpiresAt: rec.claim.expiresAt, Live: live && err == nil})
			return true
		})
		return nil
	})
	return out, err
}
