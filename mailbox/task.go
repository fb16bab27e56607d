package mailbox

import (
	"context"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A task is one child for one message: lease and claim are granted by one
// transaction and ended by one.

// Begin acquires the lease of a slot for a long-lived process, records ev with
// it, and keeps the lease (fence.Leases.Keep). The caller ends it with Leave.
// Refusals as for fence.Leases.Acquire.
func (b *Box) Begin(ctx context.Context, slot fence.Slot, p fence.Process, ttl time.Duration, ev Event) (fence.Lease, error) {
	var lease fence.Lease
	defer b.leases.Starting(slot)()
	ev.At = b.wall().UTC()
	err := b.store.Update(ctx, func(tx store.Tx) (err error) {
		lease, err = b.beginTx(tx, slot, p, ttl, ev)
		return err
	})
	if err != nil {
		return fence.Lease{}, err
	}
	b.leases.Keep(slot, lease.Token)
	b.journal.appended()
	return lease, nil
}

// beginTx is Begin within tx. The caller keeps the lease once tx is committed.
func (b *Box) beginTx(tx store.Tx, slot fence.Slot, p fence.Process, ttl time.Duration, ev Event) (fence.Lease, error) {
	lease, err := b.leases.AcquireTx(tx, slot, p, ttl, b.leases.Now())
	if err != nil {
		return fence.Lease{}, err
	}
	ev.Actor, ev.Slot, ev.Process, ev.Token = slot.Actor, slot.Number, p, lease.Token
	b.eventTx(tx, ev)
	return lease, nil
}

// StartTask waits until ctx ends for a ready message of the slot's actor. Then
// one transaction acquires the slot's lease for p and claims the message; both
// are kept. The caller starts the child, and ends both with EndTask, or with
// Unstart if there was no child to start. Refusals: actor_lease_held,
// lease_corrupt, disk_full; ctx's error when it ends first.
func (b *Box) StartTask(ctx context.Context, slot fence.Slot, p fence.Process, ttl time.Duration) (fence.Lease, Delivery, error) {
	for {
		ids, err := b.ready(ctx, slot.Actor, 1, true, nil)
		if err != nil {
			return fence.Lease{}, Delivery{}, err
		}
		lease, d, err := b.startTask(ctx, slot, p, ttl, ids[0])
		switch {
		case err == nil:
			return lease, d, nil
		case refusal.Has(err, refusal.MessageNotClaimable), refusal.Has(err, refusal.MessageMissing):
			// The entry was out of date, or the message waits after all (the wall
			// clock went back, its actor was paused): look for the next.
			b.giveBack(ctx, slot.Actor, ids)
		case refusal.Has(err, refusal.StoreCorrupt):
			b.log.Error("unreadable message left alone", "msg", ids[0].String(), "err", err)
		default:
			b.giveBack(ctx, slot.Actor, ids)
			return fence.Lease{}, Delivery{}, err
		}
	}
}

func (b *Box) startTask(ctx context.Context, slot fence.Slot, p fence.Process, ttl time.Duration, id ID) (lease fence.Lease, d Delivery, err error) {
	defer b.leases.Starting(slot)()
	b.grants.enter(p)
	defer b.grants.leave(p)
	m := b.moment()
	var rec *record
	// A message taken from the index must not be lost to a context that ends now.
	err = b.store.Update(context.WithoutCancel(ctx), func(tx store.Tx) (err error) {
		m.now = b.leases.Now()
		if rec, err = b.mustGet(tx, id); err != nil {
			return err
		}
		switch {
		case rec.to != slot.Actor:
			return notClaimable(rec, "it is addressed to "+rec.to)
		case b.policy(rec.to).heldBack():
			return notClaimable(rec, "deliveries to "+rec.to+" are held back")
		case rec.state != New:
			return notClaimable(rec, "it is "+rec.state.String())
		}
		if err := b.waitsTx(tx, rec, m.at); err != nil {
			return err
		}
		c, err := decodeContent(id, tx.Get(idKey(spaceContent, id)))
		if err != nil {
			return err
		}
		if lease, err = b.leases.AcquireTx(tx, slot, p, ttl, m.now); err != nil {
			return err
		}
		b.grantTx(tx, rec, lease.Holder(), "", true, m)
		d = b.delivery(rec, c, m.now)
		return nil
	})
	if err != nil {
		return fence.Lease{}, Delivery{}, err
	}
	b.leases.Keep(slot, lease.Token)
	b.index.granted(id, rec.hold())
	b.tallies.of(rec.to).claims.Add(1)
	return lease, d, nil
}

// Unstart undoes StartTask where the child could not be started: that is no
// attempt. The message is NEW again, uncharged and with its earlier ordinal,
// the lease is released, and ev recorded, in one transaction.
func (b *Box) Unstart(ctx context.Context, h fence.Holder, ref Ref, ev Event) error {
	at := b.wall()
	ev.At, ev.Actor, ev.Slot, ev.Process, ev.Message, ev.Token = at.UTC(), h.Slot.Actor, h.Slot.Number, h.Process, ref.ID, ref.Token
	var back *record
	var ready []readied
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		back, ready = nil, nil
		rec, err := b.get(tx, ref.ID)
		if err != nil {
			b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
			rec = nil
		}
		// The claim alone decides: there is no child that its lease could fence.
		if rec != nil && rec.state == Claimed && rec.claim.token == ref.Token && rec.claim.process == h.Process {
			rec.attempt--
			to := New
			if rec.claim.cancelled {
				to = Dead
				rec.failure = LastFailure{Category: CategoryCancelled, Reason: "cancelled before it could be started", At: at.UTC()}
				b.eventTx(tx, Event{At: at.UTC(), Kind: protocol.EventCancelled, Actor: rec.to, Message: rec.id, Category: string(CategoryCancelled)})
			}
			ready = b.moveTx(tx, rec, to, at.UTC())
			back = rec
		}
		if err := b.leases.ReleaseTx(tx, h); err != nil && !refusal.Has(err, refusal.ActorLeaseLost) && !refusal.Has(err, refusal.LeaseCorrupt) {
			return err
		}
		b.eventTx(tx, ev)
		return nil
	})
	if err != nil {
		return err
	}
	b.leases.Drop(h.Slot, h.Token)
	b.index.ended(ref)
	if back == nil {
		b.journal.appended()
		return nil
	}
	end := ending{ref: ref, to: back.to, state: back.state, ready: ready, purgeAt: back.purgeAt}
	if back.state == New {
		end.lapsesAt = back.lapsesAt
	}
	b.fold(end)
	return nil
}

// EndTask ends a task's claim with o and releases its lease, in one transaction.
//
// If the claim is no longer current nothing of o is committed: a claim that is
// still on record but not live is ended as stale_completion, whose outcome is
// unreported (P4.7); the lease is released where it is still the task's; a
// stale_completion event says so; and the refusal (fencing_token_stale,
// lease_expired, actor_lease_lost, …) is returned after that is durable. A task that
// settled its claim itself before it ended has had its say: nothing of o is
// committed, and that is no refusal. Nor is a record that cannot be read: it is
// logged and left alone, and the lease is released.
func (b *Box) EndTask(ctx context.Context, h fence.Holder, ref Ref, o Outcome) (Settled, error) {
	m := b.moment()
	var end ending
	var refused error
	var ended bool
	var own *Settled // what the task itself had settled before it ended
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		end, refused, ended, own = ending{}, nil, false, nil
		rec, err := b.currentTx(tx, h, ref, b.leases.Now())
		switch {
		case err == nil:
		case refusal.Of(err).Category == refusal.Failed:
			return err
		case refusal.Has(err, refusal.AlreadySettled):
			// The task said itself how it ended: that stands, whatever its exit
			// status.
			if own, err = b.ownSettleTx(tx, ref); err != nil {
				b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
				own = &Settled{}
			}
		default:
			refused = err
			if rec, err = b.get(tx, ref.ID); err != nil {
				b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
				rec = nil
			}
			if rec != nil && (rec.state != Claimed || rec.claim.token != ref.Token || rec.claim.process != h.Process) {
				rec = nil
			}
		}
		outcome := o
		if refused != nil {
			outcome = Outcome{Verdict: Unreported, Category: CategoryStaleCompletion, ExitCode: o.ExitCode, Signal: o.Signal,
				Reason: fmt.Sprintf("the task ended as %s when its claim was no longer current", o.Category)}
			b.eventTx(tx, Event{At: m.at, Kind: protocol.EventStaleCompletion, Actor: h.Slot.Actor, Slot: h.Slot.Number, Process: h.Process,
				Message: ref.ID, Token: ref.Token, Category: string(refusal.Of(refused).Category), Text: refused.Error()})
		}
		if rec != nil {
			if end, err = b.endTx(tx, rec, outcome, maxInline, m); err != nil {
				return err
			}
			ended = true
		}
		if err := b.leases.ReleaseTx(tx, h); err != nil && !refusal.Has(err, refusal.ActorLeaseLost) && !refusal.Has(err, refusal.LeaseCorrupt) {
			return err
		}
		return nil
	})
	if err != nil {
		return Settled{}, err
	}
	b.leases.Drop(h.Slot, h.Token)
	b.index.ended(ref)
	if own != nil {
		return *own, nil
	}
	if refusal.Has(refused, refusal.StoreCorrupt) {
		refused = nil // it is logged, and nobody can do more about it
	}
	if !ended {
		b.journal.appended()
		return Settled{}, refused
	}
	out, err := b.settled(ctx, end)
	if err == nil {
		err = refused
	}
	return out, err
}
