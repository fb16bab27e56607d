package mailbox

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/store"
)

// Stage sends m within the holder's claim: on return it is on disk with its
// place in the recipient's inbox reserved, and invisible until the claim
// completes; if the claim ends otherwise it is removed (P8). From is the
// holder's actor. It is refused like a settle of the claim, or like a Send.
func (b *Box) Stage(ctx context.Context, h fence.Holder, ref Ref, m Outgoing) (Sent, error) {
	sent, err := b.stage(ctx, h, ref, m)
	if err != nil {
		return Sent{}, b.refuse(h, ref, "send", err)
	}
	return sent, nil
}

func (b *Box) stage(ctx context.Context, h fence.Holder, ref Ref, m Outgoing) (Sent, error) {
	m.From = h.Slot.Actor
	current := func(r store.Reader) error {
		_, err := b.currentTx(r, h, ref, b.leases.Now())
		return err
	}
	d, err := b.draft(m, b.wall())
	if err != nil {
		return Sent{}, b.fenceFirst(ctx, err, current)
	}
	var sent Sent
	err = b.store.Update(ctx, func(tx store.Tx) error {
		if err := current(tx); err != nil {
			return err
		}
		sent, err = b.sendTx(tx, d, staged, ref)
		return err
	})
	if err != nil {
		return Sent{}, err
	}
	return sent, nil
}

// unstage removes staged sends of a claim that goes on: those of a completion
// whose other sends were refused.
func (b *Box) unstage(ctx context.Context, parent Ref, ids []ID) error {
	for step := range slices.Chunk(ids, maxInline) {
		err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
			for _, id := range step {
				b.dropStagedTx(tx, parent, id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.stale.ends(len(step))
	}
	return nil
}

// pending says what is still to be done with the staged sends of an ended
// claim, or with the receipts of a dropped message. It is stored as one byte.
type pending byte

const (
	publishStaged pending = 1
	discardStaged pending = 2
	dropReceipts  pending = 3 // of a message that has been dropped; the claim's token is 0
)

// stagedStepTx makes up to limit staged sends of a claim visible, or removes
// them, and says whether there are more. It looks from the id on: none is staged below.
func (b *Box) stagedStepTx(tx store.Tx, keys *stock, parent Ref, from ID, what pending, limit int) (out appeared, more bool, err error) {
	var ids []ID
	// No id is so great, so that the end is behind them all.
	tx.Scan(keys.stagedKey(parent, from), keys.stagedKey(parent, math.MaxUint64), func(k, _ []byte) bool {
		if len(ids) == limit {
			more = true
			return false
		}
		if _, id, ok := parseStagedKey(k); ok {
			ids = append(ids, id)
		}
		return true
	})
	for _, id := range ids {
		out.last = id
		if what == discardStaged {
			b.dropStagedTx(tx, parent, id)
			out.dropped++
			continue
		}
		tx.Delete(stagedKey(parent, id))
		rec, err := b.get(tx, id)
		if err != nil {
			// Damage does not hold back the end of an attempt: Verify reports it.
			b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
			continue
		}
		if rec != nil && rec.state == staged && rec.parent == parent {
			out.ready = append(out.ready, b.moveTx(tx, rec, New, rec.endedAt)...)
			out.ids, out.to = append(out.ids, id), append(out.to, rec.to)
			out.lapsesAt = earlier(out.lapsesAt, rec.lapsesAt)
		}
	}
	return out, more, nil
}

// appeared are staged sends that have become visible, or were removed.
type appeared struct {
	ids      []ID
	to       []string  // their recipients
	ready    []readied // those that can be claimed, as far as their group goes
	lapsesAt time.Time // the earliest end of a time to live among them, zero = none
	dropped  int       // those that were removed
	last     ID        // the greatest of all
}

// dropStagedTx removes one staged send and frees its place and its key.
func (b *Box) dropStagedTx(tx store.Tx, parent Ref, id ID) {
	tx.Delete(stagedKey(parent, id))
	rec, err := b.get(tx, id)
	if err != nil {
		// Damage does not hold back the end of an attempt: Verify reports it.
		b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
		return
	}
	if rec == nil || rec.state != staged || rec.parent != parent {
		return
	}
	c, err := decodeContent(id, tx.Get(idKey(spaceContent, id)))
	if err != nil {
		b.log.Error("unreadable content removed", "msg", id.String(), "err", err)
	} else if c.key != "" {
		if v := tx.Get(dedupKey(rec.to, c.key)); v != nil {
			if k, err := decodeKey(v); err == nil && k.id == id {
				tx.Delete(dedupKey(rec.to, c.key))
			}
		}
	}
	tx.Delete(idKey(spaceContent, id))
	tx.Delete(rec.key())
	tx.Add(countKey(rec.to, staged), -1)
}

// finish handles, step by step, what is pending. Each step begins behind the one before:
// what that has deleted would have to be passed over by each until a checkpoint.
func (b *Box) finish(ctx context.Context, parent Ref, what pending) (visible []ID, err error) {
	var from ID
	for {
		var step appeared
		var more bool
		err := b.store.Update(store.Essential(ctx), func(tx store.Tx) (err error) {
			if what == dropReceipts {
				more = dropReceiptsTx(tx, parent.ID)
			} else {
				step, more, err = b.stagedStepTx(tx, nil, parent, from, what, maxInline)
			}
			if err == nil && !more {
				tx.Delete(claimKey(spacePending, parent))
			}
			return err
		})
		if err != nil {
			return visible, err
		}
		visible = append(visible, step.ids...)
		for i, to := range step.to {
			b.tallies.of(to).sent.Add(1)
			b.arrivals.tell(step.ids[i], to)
		}
		b.stale.ends(step.dropped)
		b.pushAll(step.ready)
		b.lapses.set(step.lapsesAt)
		if !more {
			return visible, nil
		}
		from = step.last + 1
	}
}

// finishPending handles what a crash left pending. It runs before the index is
// built, which then finds every message in its place.
func (b *Box) finishPending(ctx context.Context) error {
	type job struct {
		ref  Ref
		what pending
	}
	var jobs []job
	err := b.store.View(ctx, func(r store.Reader) error {
		jobs = jobs[:0]
		r.Scan([]byte{spacePending}, nil, func(k, v []byte) bool {
			if ref, ok := parseClaimKey(k); ok && len(v) == 1 {
				jobs = append(jobs, job{ref, pending(v[0])})
			}
			return true
		})
		return nil
	})
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if _, err := b.finishNow(ctx, j.ref, j.what); err != nil {
			return err
		}
	}
	return nil
}

// visible returns rec as readers see it: a staged send whose attempt has
// completed counts as NEW from the completion's transaction on, although its
// own record may be rewritten a step later.
func (b *Box) visible(r store.Reader, rec *record) *record {
	if rec != nil && rec.state == staged && published(r, rec.parent) {
		rec.state = New
	}
	return rec
}

// published reports whether the claim has completed and its staged sends are
// being made visible.
func published(r store.Reader, parent Ref) bool {
	v := r.Get(claimKey(spacePending, parent))
	return len(v) == 1 && pending(v[0]) == publishStaged
}
