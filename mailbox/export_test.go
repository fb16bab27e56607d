package mailbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// PopDue makes ready what is due, as Run does at the due time.
func (b *Box) PopDue() { b.index.popDue(b.wall()) }

// LapseDue ends what has waited for longer than its time to live, as Run does at
// that time.
func (b *Box) LapseDue(ctx context.Context) error {
	_, err := b.lapseDue(ctx)
	return err
}

// TrimEvents removes the events beyond the number that is kept, as Run does.
func (b *Box) TrimEvents(ctx context.Context) error { return b.trimEvents(ctx) }

// ReadyEntries returns the entries of the index that wait to be claimed or to
// become due, stale ones included.
func (b *Box) ReadyEntries() (n int) {
	b.index.mu.Lock()
	defer b.index.mu.Unlock()
	for _, q := range b.index.queues {
		for _, l := range q.levels {
			n += len(l.ids.all)
		}
	}
	return n + len(b.index.due.all)
}

// Waiting returns how many claims wait for a message of actor.
func (b *Box) Waiting(actor string) int {
	b.index.mu.Lock()
	defer b.index.mu.Unlock()
	return len(b.index.queue(actor).waiting)
}

// IndexHolds returns the claims that the index knows of and their entries by
// expiry.
func (b *Box) IndexHolds() (holds, expiries int) {
	b.index.mu.Lock()
	defer b.index.mu.Unlock()
	return len(b.index.holds), len(b.index.exp.all)
}

// PurgeDue looks once at what may go.
func (b *Box) PurgeDue(ctx context.Context) (next time.Time, err error) { return b.purgeDue(ctx) }

var Printable = printable

// SpaceOpen is the key space of the messages that have not ended.
const SpaceOpen = spaceOpen

// FinishRest tries once what a full disk left unfinished.
func (b *Box) FinishRest(ctx context.Context) (left bool, added <-chan struct{}) {
	return b.finishRest(ctx)
}

// BoundLists has a list read so many records at a time, and its pages end after so
// many such steps, however slow the machine is.
func (b *Box) BoundLists(records, steps int) {
	b.bounds.records, b.bounds.steps, b.bounds.time = records, steps, time.Hour
}

// SpaceBlock is the key space of the marks of blocks.
const SpaceBlock = spaceBlock

// Unread returns how many blocks have not been read into the index.
func (b *Box) Unread() int {
	b.index.mu.Lock()
	defer b.index.mu.Unlock()
	return len(b.index.unread)
}

// ReadAll reads all blocks into the index.
func (b *Box) ReadAll(ctx context.Context) error {
	b.index.mu.Lock()
	var all []block
	for k := range b.index.unread {
		all = append(all, k)
	}
	b.index.mu.Unlock()
	for _, k := range all {
		if err := b.readBlock(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// InOrder returns the messages of an actor that can be claimed, in the order in which
// they are to be: as all open records say, without the index.
func (b *Box) InOrder(ctx context.Context, actor string) (ids []ID, err error) {
	if b.policy(actor).heldBack() {
		return nil, nil
	}
	now := b.wall()
	var ready []*record
	err = b.store.View(ctx, func(r store.Reader) error {
		ready = nil
		r.Scan([]byte{spaceOpen}, nil, func(k, v []byte) bool {
			id, _ := parseIDKey(k)
			rec, err := decodeRecord(id, v, nil)
			if err == nil && rec.to == actor && rec.state == New && b.waitsTx(r, rec, now) == nil {
				ready = append(ready, rec)
			}
			return true
		})
		return nil
	})
	slices.SortFunc(ready, func(a, b *record) int { return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id)) })
	for _, rec := range ready {
		ids = append(ids, rec.id)
	}
	return ids, err
}

// Unmark looks at so many marks of blocks, and removes those that stand for nothing.
func (b *Box) Unmark(ctx context.Context, most int) error { return b.unmark(ctx, most) }

// Keys returns how many idempotency keys are on record.
func (b *Box) Keys(ctx context.Context) (n int, err error) {
	err = b.store.View(ctx, func(r store.Reader) error {
		n = 0
		r.Scan([]byte{spaceKey}, nil, func(_, _ []byte) bool { n++; return true })
		return nil
	})
	return n, err
}

// MaxNoted is maxNoted.
const MaxNoted = maxNoted
