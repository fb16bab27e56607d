package mailbox

import (
	"context"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store"
)

// A message with a time to live that is not claimed in time is DEAD, expired. The
// time is of the wall clock, as that of a delayed message. NEW messages that have
// one lie under spaceLapse by when it is over, and a timer waits for the first. No
// answer depends on it: a claim that finds the time over is refused.

// lapsed reports whether rec's time to live is over at now.
func (r *record) lapsed(now time.Time) bool { return !r.lapsesAt.IsZero() && !now.Before(r.lapsesAt) }

// lapseTx says in rec, and in the journal, that it ends because its time to live
// is over.
func (b *Box) lapseTx(tx store.Tx, rec *record, at time.Time) {
	reason := "its time to live was over before it was claimed"
	if rec.attempt > 0 {
		reason = fmt.Sprintf("its time to live was over after attempt %d", rec.attempt)
		if rec.failure.Category != "" && rec.failure.Category != CategoryExpired {
			reason += fmt.Sprintf(" (%s)", rec.failure.Category)
		}
	}
	rec.failure = LastFailure{Category: CategoryExpired, Reason: reason, At: at}
	b.eventTx(tx, Event{At: at, Kind: protocol.EventDead, Actor: rec.to, Message: rec.id, Attempt: rec.attempt,
		Category: string(CategoryExpired), Text: reason})
}

// lapseDue ends the messages whose time to live is over by now, and returns when
// the next one's is.
func (b *Box) lapseDue(ctx context.Context) (next time.Time, err error) {
	for {
		list, next, err := b.dueBy(ctx, spaceLapse, b.wall())
		if err != nil || len(list) == 0 {
			return next, err
		}
		if err := together(list, func(d due) error { return b.lapse(ctx, d.id, d.at) }); err != nil {
			return next, err
		}
	}
}

// lapse ends a message if it is NEW and its time to live, until due, is over. An
// index entry that its record does not bear out is removed.
func (b *Box) lapse(ctx context.Context, id ID, due time.Time) error {
	at := b.wall().UTC()
	var end *ending
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		end = nil
		rec, err := b.get(tx, id)
		if err != nil {
			b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
		}
		switch {
		case rec == nil || rec.state != New || !rec.lapsesAt.Equal(due):
			tx.Delete(lapseKey(due, id))
		case rec.lapsed(at):
			b.lapseTx(tx, rec, at)
			ready := b.moveTx(tx, rec, Dead, at)
			end = &ending{ref: Ref{ID: id}, to: rec.to, state: Dead, ready: ready, purgeAt: rec.purgeAt}
		}
		return nil
	})
	if err == nil && end != nil {
		b.fold(*end)
	}
	return err
}
