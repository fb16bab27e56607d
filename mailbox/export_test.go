package mailbox

import "context"

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

var Printable = printable

// SpaceOpen is the key space of the messages that have not ended.
const SpaceOpen = spaceOpen

// FinishRest tries once what a full disk left unfinished.
func (b *Box) FinishRest(ctx context.Context) (left bool, added <-chan struct{}) {
	return b.finishRest(ctx)
}

// BoundLists has a list read so many records at a time, and its pages end after so
// many such steps.
func (b *Box) BoundLists(records, steps int) { b.bounds.records, b.bounds.steps = records, steps }
