package mailbox

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/store"
)

// Ended messages and events are kept as long as their actor's retention says and
// then removed, in small transactions, at the time that is theirs: the index of
// what may go (spacePurge) is ordered by time, and a timer waits for the first of
// it. An idempotency key that outlives its message (key ttl) goes the same way.

// purgeAt is when a message that ended at endedAt may go, by the policy of its
// actor; zero: never.
func purgeAt(s State, endedAt time.Time, k Retention) time.Time {
	keep := k.Done
	switch s {
	case Done:
	case Dead:
		keep = k.Dead
	default:
		return time.Time{}
	}
	if keep <= 0 {
		if k.counted(s) <= 0 {
			return time.Time{}
		}
		keep = maxSpan // its number bounds it; so it is in the index
	}
	return endedAt.Add(keep).UTC()
}

// schedulePurgeTx enters a message that has just ended into the index of what
// may go.
func (b *Box) schedulePurgeTx(tx store.Tx, rec *record) {
	rec.purgeAt = purgeAt(rec.state, rec.endedAt, b.policy(rec.to).Retention)
	if !rec.purgeAt.IsZero() {
		tx.Put(rec.stock.purgeKey(rec.purgeAt, rec.id), purgeValue(rec))
	}
}

// A wall clock that is wrong for a moment, a month or a century ahead, would have all
// that is kept removed, and messages that are DEAD are work that a person is to see to. So
// where it has been set forward, by more than stepLeast, nothing is removed for its age
// until stepRest has passed: most often it is right again by then.
const (
	stepLeast = time.Minute
	stepRest  = 10 * time.Minute
)

// A steadiness sees whether the wall clock goes as the lease clock does. The zero value
// has seen neither.
type steadiness struct {
	offset int64         // wall clock minus lease clock at the last look, 0 before the first
	until  fence.Instant // nothing is removed for its age before
}

// rest looks at both clocks, and returns for how long nothing is to be removed yet. What
// the lease clock leaves out looks like a step, and costs a rest.
func (s *steadiness) rest(wall time.Time, now fence.Instant) time.Duration {
	offset := wall.UnixNano() - int64(now)
	if s.offset != 0 && offset-s.offset > int64(stepLeast) {
		s.until = now + fence.Instant(stepRest)
	}
	s.offset = offset
	return time.Duration(max(0, s.until-now))
}

// purgeDue removes the messages and events that may go by now, and returns when
// the next one may.
func (b *Box) purgeDue(ctx context.Context) (next time.Time, err error) {
	wall := b.wall()
	rest := b.steady.rest(wall, b.leases.Now())
	if rest > 0 {
		next = wall.Add(rest)
	} else if next, err = b.purgeAged(ctx); err != nil {
		return next, err
	}
	if err := b.trim(ctx); err != nil {
		return next, err
	}
	if err := b.trimEvents(ctx); err != nil || rest > 0 {
		return next, err
	}
	events, err := b.purgeEvents(ctx)
	if next.IsZero() || !events.IsZero() && events.Before(next) {
		next = events
	}
	return next, err
}

// purgeAged removes the messages that may go by now, and returns when the next one may.
func (b *Box) purgeAged(ctx context.Context) (next time.Time, err error) {
	for {
		now := b.wall()
		var list []due
		if list, next, err = b.dueBy(ctx, spacePurge, now); err != nil || len(list) == 0 {
			return next, err
		}
		err = together(list, func(d due) error {
			if d.key != nil {
				return b.purgeKeyOf(ctx, d.id, d.at, d.key)
			}
			return b.purge(ctx, d.id, d.at, now)
		})
		if err != nil {
			return next, err
		}
	}
}

var errKeep = errors.New("kept")

// purge removes one message whose time has come, unless its actor keeps messages
// longer now than when it ended; then its time is set anew.
func (b *Box) purge(ctx context.Context, id ID, at, now time.Time) error {
	err := b.drop(ctx, id, "", func(rec *record) error {
		if !rec.purgeAt.Equal(at) || purgeAt(rec.state, rec.endedAt, b.policy(rec.to).Retention).After(now) {
			return errKeep
		}
		return nil
	})
	if err == nil || gone(err) != nil {
		return err
	}
	return b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		tx.Delete(purgeKey(at, id))
		rec, err := b.get(tx, id)
		if err != nil || rec == nil || rec.open() || !rec.purgeAt.Equal(at) {
			return nil // an index entry without its message, or an unreadable one: left to verify
		}
		b.schedulePurgeTx(tx, rec)
		tx.Put(rec.key(), rec.encode())
		return nil
	})
}

// eventStep bounds the events removed by one transaction.
const eventStep = 64

// purgeEvents removes the events that are older than every declared actor keeps
// them, and returns when the next one is. Where no actor sets a time all are kept.
func (b *Box) purgeEvents(ctx context.Context) (next time.Time, err error) {
	var keep time.Duration
	for _, a := range b.actors.all() {
		if !a.Removed {
			keep = max(keep, a.Retention.Events)
		}
	}
	if keep <= 0 {
		return time.Time{}, nil
	}
	first, err := b.dropEvents(ctx, func(k, v []byte) bool {
		ev, err := decodeEvent(binary.BigEndian.Uint64(k[1:]), v)
		return err != nil || !ev.At.After(b.wall().Add(-keep))
	})
	if first == nil || err != nil {
		return time.Time{}, err
	}
	ev, err := decodeEvent(0, first)
	return ev.At.Add(keep), err
}
