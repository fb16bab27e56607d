package mailbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store"
)

// epochKey holds the store's epoch that claims were last parked for, 8 bytes; a
// store that was never restored has none, which is epoch 0.
var epochKey = []byte{spaceEpoch}

// ParkRestored parks every message that the store holds as claimed, if that has
// not been done for this epoch of the store (P7): after a restore nobody knows
// how those attempts ended, nor whether they have ended since and their effects
// are there. Each gets a receipt, worker_lost, and is charged that one start; its
// staged sends are removed. The actor's policy does not count, nor does a wish to
// cancel.
//
// It is done in steps and repeatable: the epoch is recorded with the last of
// them, so that a crash in between leaves the rest to the next opening. It is
// called before anything is granted, with the process that opened the store its
// only user, and costs one read when there is nothing to do. It returns what it
// parked.
func (b *Box) ParkRestored(ctx context.Context, epoch uint64) ([]Ref, error) {
	ctx = store.Essential(ctx)
	var done uint64
	err := b.store.View(ctx, func(r store.Reader) error {
		done = parkedFor(r)
		return nil
	})
	if err != nil || done >= epoch {
		return nil, err
	}
	claims, err := b.Claims(ctx)
	if err != nil {
		return nil, err
	}
	var parked []Ref
	steps := slices.Collect(slices.Chunk(claims, maxLeave))
	for _, step := range steps {
		refs, err := b.parkStep(ctx, step, 0)
		parked = append(parked, refs...)
		if err != nil {
			return parked, err
		}
	}
	_, err = b.parkStep(ctx, nil, epoch)
	return parked, err
}

// parkedFor is the epoch that claims were last parked for.
func parkedFor(r store.Reader) uint64 {
	v := r.Get(epochKey)
	if len(v) != 8 {
		return 0 // park once too often rather than not at all
	}
	return binary.BigEndian.Uint64(v)
}

// parkStep parks the claims of step in one transaction. An epoch other than 0 is
// recorded with it.
func (b *Box) parkStep(ctx context.Context, step []OpenClaim, epoch uint64) (parked []Ref, err error) {
	m := b.moment()
	var ends []ending
	err = b.store.Update(ctx, func(tx store.Tx) error {
		ends = ends[:0]
		for _, c := range step {
			rec, err := b.get(tx, c.Ref.ID)
			if err != nil {
				b.log.Error("unreadable message left alone", "msg", c.Ref.ID.String(), "err", err)
				continue
			}
			if rec == nil || rec.state != Claimed || rec.claim.token != c.Ref.Token {
				continue
			}
			rec.claim.cancelled = false
			e, err := b.endTx(tx, rec, Outcome{Verdict: Unreported, Category: CategoryWorkerLost, ExitCode: -1, park: true,
				Reason: "the store was restored or rolled back to a time when this attempt was under way; how it ended is not known"},
				0, m)
			if err != nil {
				return err
			}
			ends = append(ends, e)
		}
		if epoch != 0 {
			tx.Put(epochKey, binary.BigEndian.AppendUint64(nil, epoch))
			b.eventTx(tx, Event{At: m.at, Kind: protocol.EventNewEpoch,
				Text: fmt.Sprintf("the store was restored or rolled back; epoch %d begins", epoch)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.journal.appended()
	for _, e := range ends {
		parked = append(parked, e.ref)
		if _, err := b.settled(ctx, e); err != nil {
			return parked, err
		}
	}
	return parked, nil
}

// Newer counts the messages that were sent after the message since, by state.
func (b *Box) Newer(ctx context.Context, since ID) (c Counts, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		c = Counts{}
		count := func(k, v []byte) bool {
			var rec record
			if id, ok := parseIDKey(k); ok && rec.decode(id, v, b.actors.name) == nil {
				c.add(b.visible(r, &rec).state, 1)
			}
			return true
		}
		r.Scan(idKey(spaceOpen, since+1), nil, count)
		r.Scan(idKey(spaceClosed, since+1), nil, count)
		return nil
	})
	return c, err
}
