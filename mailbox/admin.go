package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Retry makes a DEAD or PARKED message NEW again: its charges are reset, its
// receipts, attempt ordinal and last failure kept. Its time to live, where it has
// one, runs anew. One of a group waits while a later one of it is worked on, and
// is the next after that. The inbox limit does not apply. Another state is refused,
// wrong_state, as is the message of an actor that is no longer declared.
func (b *Box) Retry(ctx context.Context, id ID) error { return b.RetryIf(ctx, id, Standing{}) }

// RetryIf is Retry of a message that stands as it is said to, see Standing.
func (b *Box) RetryIf(ctx context.Context, id ID, as Standing) error {
	at := b.wall().UTC()
	var ready []readied
	var lapses time.Time
	err := b.store.Update(ctx, func(tx store.Tx) error {
		rec, err := b.mustGet(tx, id)
		if err != nil {
			return err
		}
		if err := as.check(rec); err != nil {
			return err
		}
		if rec.state != Dead && rec.state != Parked {
			next := "wait until it has ended"
			if rec.state == Done {
				next = "it is done; to have it done again, send it again"
			}
			return wrongState(rec, "only DEAD and PARKED messages can be retried", next)
		}
		if b.policy(rec.to).Removed {
			return wrongState(rec, "its actor "+rec.to+" is not in the present actors.yaml", "declare the actor again, then retry")
		}
		rec.attempts, rec.deaths = 0, 0
		rec.dueAt = time.Time{}
		if !rec.lapsesAt.IsZero() {
			c, err := decodeContent(id, tx.Get(idKey(spaceContent, id)))
			if err != nil {
				return err
			}
			rec.lapsesAt = at.Add(c.ttl).UTC()
		}
		ready, lapses = b.moveTx(tx, rec, New, at), rec.lapsesAt
		b.eventTx(tx, Event{At: at, Kind: protocol.EventRetried, Actor: rec.to, Message: id})
		return nil
	})
	if err != nil {
		return err
	}
	b.pushAll(ready)
	b.lapses.set(lapses)
	b.journal.appended()
	return nil
}

// Cancelling says what Cancel found.
type Cancelling struct {
	Running bool         // an attempt is under way: end its process, then its claim
	Holder  fence.Holder // of that attempt
	Ref     Ref          // of that attempt
}

// cancelledReason is why a message was cancelled, where nobody knows better.
const cancelledReason = "cancelled by an operator"

// Cancel ends a message by a person's word. A NEW or PARKED one is DEAD when it
// returns. A CLAIMED one is marked, so that every end of its attempt but a
// completion makes it DEAD, cancelled; Running asks the caller to end the
// attempt's process. Ended messages are refused, wrong_state.
func (b *Box) Cancel(ctx context.Context, id ID) (Cancelling, error) {
	return b.CancelIf(ctx, id, Standing{})
}

// CancelIf is Cancel of a message that stands as it is said to, see Standing.
func (b *Box) CancelIf(ctx context.Context, id ID, as Standing) (Cancelling, error) {
	at := b.wall().UTC()
	var out Cancelling
	var end ending
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		out = Cancelling{}
		rec, err := b.mustGet(tx, id)
		if err == nil {
			err = as.check(rec)
		}
		if err != nil {
			return err
		}
		switch rec.state {
		case New, Parked:
			rec.failure = LastFailure{Category: CategoryCancelled, Reason: cancelledReason, At: at}
			ready := b.moveTx(tx, rec, Dead, at)
			end = ending{ref: Ref{ID: id}, to: rec.to, state: Dead, ready: ready, purgeAt: rec.purgeAt}
			b.eventTx(tx, Event{At: at, Kind: protocol.EventCancelled, Actor: rec.to, Message: id, Category: string(CategoryCancelled)})
		case Claimed:
			out = Cancelling{Running: true, Holder: rec.holder(), Ref: rec.ref()}
			if !rec.claim.cancelled {
				rec.claim.cancelled = true
				tx.Put(rec.key(), rec.encode())
			}
		default:
			return wrongState(rec, "it has ended already", "use `sovereign inbox drop "+id.String()+"` to remove it")
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	if !out.Running {
		b.fold(end)
	}
	return out, nil
}

// EndCancelled ends an attempt that Cancel marked and whose worker lives on: its
// claim is taken from it, the message is DEAD, the receipt says cancelled. It
// reports false where the attempt has ended already. The worker is told.
func (b *Box) EndCancelled(ctx context.Context, h fence.Holder, ref Ref) (bool, error) {
	m := b.moment()
	var end *ending
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		end = nil
		rec, err := b.mustGet(tx, ref.ID)
		if err != nil || rec.state != Claimed || rec.claim.token != ref.Token || !rec.claim.cancelled {
			return err
		}
		e, err := b.endTx(tx, rec, Outcome{Verdict: Kill, Category: CategoryCancelled, ExitCode: -1,
			Reason: cancelledReason, expired: b.expired(rec, b.leases.Now())}, 0, m)
		end = &e
		return err
	})
	if err != nil || end == nil {
		return false, err
	}
	_, err = b.settled(ctx, *end)
	b.tellLost(h, ref, "cancelled")
	return true, err
}

// maxDropReceipts bounds the receipts removed by one transaction.
const maxDropReceipts = 64

// Drop removes a message with its content, result and receipts, and frees its
// key. A CLAIMED one is refused, wrong_state. Its id is not used again.
func (b *Box) Drop(ctx context.Context, id ID) error { return b.DropIf(ctx, id, Standing{}) }

// DropIf is Drop of a message that stands as it is said to, see Standing.
func (b *Box) DropIf(ctx context.Context, id ID, as Standing) error {
	return b.drop(ctx, id, protocol.EventDropped, as.check)
}

// drop is Drop if allowed agrees in the removing transaction; event "" is none.
func (b *Box) drop(ctx context.Context, id ID, event protocol.EventKind, allowed func(*record) error) error {
	at := b.wall().UTC()
	gone := Ref{ID: id}
	var more bool
	var ready []readied
	var attempt int // that had a result which was cut; 0: none
	var keyUntil time.Time
	var last *Detail // for those who wait for its end
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) (err error) {
		ready, attempt, keyUntil, last = nil, 0, time.Time{}, nil
		rec, err := b.mustGet(tx, id)
		if err != nil {
			return err
		}
		err = allowed(rec)
		if rec.state == Claimed && !errors.Is(err, ErrStandsOtherwise) {
			return wrongState(rec, "an attempt is under way", "cancel it first: `sovereign inbox cancel "+id.String()+"`")
		}
		if err != nil {
			return err
		}
		if b.ends.awaited(id) {
			if d, err := b.showTx(tx, id); err == nil {
				last = &d
			}
		}
		key := ""
		if c, err := decodeContent(id, tx.Get(idKey(spaceContent, id))); err == nil {
			key = c.key
		}
		if rec.state == New && rec.group != "" {
			ready = b.readyOf(b.regroupTx(tx, rec, New, 0, func() { tx.Delete(rec.key()) }))
		}
		if rec.state == New && !rec.lapsesAt.IsZero() {
			tx.Delete(lapseKey(rec.lapsesAt, id))
		}
		if _, cut, err := decodeResult(id, tx.Get(idKey(spaceResult, id))); err == nil && cut {
			attempt = rec.attempt
		}
		tx.Delete(rec.key())
		tx.Delete(idKey(spaceContent, id))
		tx.Delete(idKey(spaceResult, id))
		tx.Add(countKey(rec.to, rec.state), -1)
		if !rec.purgeAt.IsZero() {
			tx.Delete(purgeKey(rec.purgeAt, id))
		}
		keyUntil = b.freeKeyTx(tx, rec.to, key, id)
		if event != "" {
			b.eventTx(tx, Event{At: at, Kind: event, Actor: rec.to, Message: id})
		}
		// Receipts beyond what one transaction holds go in later ones; the message
		// is gone with the first.
		if more = dropReceiptsTx(tx, id); more {
			tx.Put(claimKey(spacePending, gone), []byte{byte(dropReceipts)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.ends.tell(id, last)
	b.stale.ends(1)
	b.retention.set(keyUntil)
	b.pushAll(ready)
	b.journal.appended()
	if attempt > 0 {
		b.tellResultGone(id, attempt)
	}
	if more {
		_, err = b.finishNow(context.WithoutCancel(ctx), gone, dropReceipts)
	}
	return err
}

// dropReceiptsTx removes up to maxDropReceipts receipts and says whether there
// are more.
func dropReceiptsTx(tx store.Tx, id ID) (more bool) {
	prefix := idKey(spaceReceipt, id)
	var keys [][]byte
	tx.Scan(prefix, after(prefix), func(k, _ []byte) bool {
		if len(keys) == maxDropReceipts {
			more = true
			return false
		}
		keys = append(keys, append([]byte(nil), k...))
		return true
	})
	for _, k := range keys {
		tx.Delete(k)
	}
	return more
}

// together does one thing to each of list, side by side, so that they share
// commits, and returns the first error; those that have begun are waited for.
func together[T any](list []T, do func(T) error) error {
	var all errgroup.Group
	all.SetLimit(64)
	for _, v := range list {
		all.Go(func() error { return do(v) })
	}
	return all.Wait()
}

// Purge drops every message of a state that has been in it for at least older
// (NEW: that was sent so long ago) and returns how many. CLAIMED is refused.
// Each is a transaction of its own; what ctx or an error stops is left as it
// is.
func (b *Box) Purge(ctx context.Context, s State, older time.Duration) (n int, err error) {
	if s == Claimed {
		return 0, refusal.New(refusal.BadRequest, "CLAIMED messages cannot be purged", "attempts of them are under way", "cancel them first")
	}
	f := Filter{State: s, Limit: maxPage}
	before := b.wall().Add(-older)
	var dropped atomic.Int64
	for {
		page, err := b.List(ctx, f)
		if err != nil {
			return int(dropped.Load()), err
		}
		err = together(page.Messages, func(m Message) error {
			since := m.EndedAt
			if s == New {
				since = m.CreatedAt
			}
			if since.After(before) {
				return nil
			}
			err := b.DropIf(ctx, m.ID, Standing{State: s, EndedBy: before})
			switch {
			case err == nil:
				dropped.Add(1)
			case refusal.Has(err, refusal.WrongState), refusal.Has(err, refusal.MessageMissing):
			default:
				return err
			}
			return nil
		})
		if err != nil || page.Next == "" {
			return int(dropped.Load()), err
		}
		f.After = page.Next
	}
}

func wrongState(rec *record, why, next string) error {
	return refusal.New(refusal.WrongState, fmt.Sprintf("message %s is %s", rec.id, rec.state), why, next)
}

// Counts returns an actor's messages by state; an actor without messages has
// zeros.
func (b *Box) Counts(ctx context.Context, actor string) (c Counts, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		c = Counts{}
		for s := New; s <= staged; s++ {
			c.add(s, r.Sum(countKey(actor, s)))
		}
		return nil
	})
	return c, err
}

// AllCounts returns the counts of every actor that has or had messages.
func (b *Box) AllCounts(ctx context.Context) (all map[string]Counts, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		all = map[string]Counts{}
		r.Sums([]byte{spaceCount}, func(k []byte, n int64) bool {
			if actor, s, ok := parseCountKey(k); ok {
				c := all[actor]
				c.add(s, n)
				all[actor] = c
			}
			return true
		})
		return nil
	})
	return all, err
}

func (c *Counts) add(s State, n int64) {
	switch s {
	case New:
		c.New += n
	case Claimed:
		c.Claimed += n
	case Done:
		c.Done += n
	case Dead:
		c.Dead += n
	case Parked:
		c.Parked += n
	case staged:
		c.Reserved += n
	}
}
