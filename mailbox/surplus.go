package mailbox

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Beside their age (retention.go) the number of ended messages of an actor is
// bounded, and that of events: the oldest beyond it are removed. So as not to look
// after each end, that is done when a sixteenth of the number has come since the
// last look; a number below sixteen is kept exactly.

// counted is how many of an actor's messages of a state are kept, 0 = any number.
func (k Retention) counted(s State) int64 {
	switch s {
	case Done:
		return k.DoneCount
	case Dead:
		return k.DeadCount
	}
	return 0
}

// slack is how many may come before it is worth looking again.
func slack(limit int64) int64 { return max(1, limit/16) }

// A trimmed is how far the index of what may go has been looked through for one
// actor and state: in it those of one policy lie in the order of their ends.
type trimmed struct {
	from []byte
	keep Retention // the policy that holds for from
}

type trimKey struct {
	actor string
	state State
}

// purgeValue tells whose message an entry of the index of what may go is, so that
// others need not be read to find an actor's.
func purgeValue(rec *record) []byte { return append([]byte{byte(rec.state)}, rec.to...) }

// trim removes the oldest ended messages of each actor that are beyond its number.
func (b *Box) trim(ctx context.Context) error {
	all, err := b.AllCounts(ctx)
	if err != nil {
		return err
	}
	for _, a := range b.actors.all() {
		next := int64(0)
		for s, have := range map[State]int64{Done: all[a.Name].Done, Dead: all[a.Name].Dead} {
			limit := a.Retention.counted(s)
			if limit <= 0 {
				continue
			}
			if next == 0 || slack(limit) < next {
				next = slack(limit)
			}
			if have > limit {
				if err := b.trimOne(ctx, trimKey{a.Name, s}, a.Retention, have-limit); err != nil {
					return err
				}
			}
		}
		b.tallies.of(a.Name).looked(next)
	}
	return nil
}

// trimOne removes the n oldest ended messages of an actor in a state.
func (b *Box) trimOne(ctx context.Context, key trimKey, keep Retention, n int64) error {
	at := b.trimmed[key]
	again := at.from != nil
	if at.keep != keep || at.from == nil {
		at, again = trimmed{from: []byte{spacePurge}, keep: keep}, false
	}
	for n > 0 {
		ids, next, err := b.endedOf(ctx, key, at.from, min(n, dueStep))
		if err != nil {
			return err
		}
		err = together(ids, func(id ID) error {
			err := b.drop(ctx, id, "", func(rec *record) error {
				if rec.state != key.state {
					return errKeep
				}
				return nil
			})
			return gone(err)
		})
		if err != nil {
			return err
		}
		n -= int64(len(ids))
		switch {
		case next != nil:
			at.from = next
		case again && n > 0:
			// Those that ended while the wall clock stood back lie further in front.
			at.from, again = []byte{spacePurge}, false
		default:
			n = 0
		}
	}
	b.trimmed[key] = at
	return nil
}

// endedOf reads the index of what may go behind from, in steps, until it has found
// want messages of an actor in a state. next is where it came to, nil at the end.
func (b *Box) endedOf(ctx context.Context, key trimKey, from []byte, want int64) (ids []ID, next []byte, err error) {
	for next = from; next != nil && int64(len(ids)) < want && err == nil; {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		from, next = next, nil
		var step []ID
		err = b.store.View(ctx, func(r store.Reader) error {
			step, next = step[:0], nil
			n := 0
			r.Scan(from, nil, func(k, v []byte) bool {
				if n++; n > ordinaryBounds.records || int64(len(ids)+len(step)) == want {
					next = bytes.Clone(k)
					return false
				}
				_, id, ok := parseDueKey(k)
				if ok && b.isOf(r, id, v, key) {
					step = append(step, id)
				}
				return true
			})
			return nil
		})
		ids = append(ids, step...)
	}
	return ids, next, err
}

// isOf reports whether an entry of the index of what may go is of an actor and
// state.
func (b *Box) isOf(r store.Reader, id ID, v []byte, key trimKey) bool {
	if len(v) > 1 {
		return State(v[0]) == key.state && string(v[1:]) == key.actor
	}
	rec, err := b.get(r, id) // of an older version of the program
	return err == nil && rec != nil && rec.state == key.state && rec.to == key.actor
}

// gone is err unless it says that a message to be removed is gone, or is not to go.
func gone(err error) error {
	if err == errKeep || refusal.Has(err, refusal.MessageMissing) || refusal.Has(err, refusal.WrongState) || refusal.Has(err, refusal.StoreCorrupt) {
		return nil
	}
	return err
}

// epochShift: numbers of the journal are epoch << 33 | count (docs/storage.md).
const epochShift = 33

// trimEvents removes the oldest events beyond the largest number that a declared
// actor keeps. Where no actor sets one all are kept.
func (b *Box) trimEvents(ctx context.Context) error {
	var keep int64
	for _, a := range b.actors.all() {
		if !a.Removed {
			keep = max(keep, a.Retention.EventsCount)
		}
	}
	b.journal.trimmed(slack(keep), keep > 0)
	if keep <= 0 {
		return nil
	}
	var until []byte // the first that is kept
	err := b.store.View(ctx, func(r store.Reader) error {
		until = nil
		left := uint64(keep)
		for to := []byte(nil); ; {
			last := uint64(0)
			r.ScanBack([]byte{spaceEvent}, to, func(k, _ []byte) bool {
				if len(k) == 9 {
					last = binary.BigEndian.Uint64(k[1:])
				}
				return last == 0
			})
			count := last & (1<<epochShift - 1)
			switch {
			case last == 0:
				return nil
			case count > left:
				until = eventKey(last - left + 1)
				return nil
			}
			left -= count
			to = eventKey(last - count + 1)
		}
	})
	if err != nil || until == nil {
		return err
	}
	_, err = b.dropEvents(ctx, func(k, _ []byte) bool { return bytes.Compare(k, until) < 0 })
	return err
}

func eventKey(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte{spaceEvent}, seq) }

// dropEvents removes events from the front, in small transactions, as long as old
// says so, and returns the first that it kept, undecoded; nil where none is left.
func (b *Box) dropEvents(ctx context.Context, old func(k, v []byte) bool) (first []byte, err error) {
	for {
		var keys [][]byte
		err := b.store.View(ctx, func(r store.Reader) error {
			keys, first = keys[:0], nil
			r.Scan([]byte{spaceEvent}, nil, func(k, v []byte) bool {
				if !old(k, v) {
					first = bytes.Clone(v)
					return false
				}
				keys = append(keys, bytes.Clone(k))
				return len(keys) < eventStep
			})
			return nil
		})
		if err != nil || len(keys) == 0 {
			return first, err
		}
		err = b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
			for _, k := range keys {
				tx.Delete(k)
			}
			return nil
		})
		if err != nil || len(keys) < eventStep {
			return first, err
		}
	}
}
