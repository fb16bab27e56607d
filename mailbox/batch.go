package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// MaxBatch is the largest number of messages of one batch.
const MaxBatch = 10_000

// The bounds of one step of a batch: so many messages, and bytes of content where
// there is more than one.
const (
	batchStep  = 12
	batchBytes = MaxBody / 2
)

// A BatchError says which message of a batch was refused.
type BatchError struct {
	Index int // in the batch, from 0
	Err   error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("message %d of the batch: %v", e.Index+1, e.Err)
}
func (e *BatchError) Unwrap() error { return e.Err }

// SendBatch makes messages durable and visible to their recipients, all at one
// moment, or none of them. It returns what Send returns for each. Two of a batch with
// one key are judged as two sends would be: the same content is a duplicate, other
// content refuses the batch. A refusal of one message is a *BatchError.
//
// They are staged first, some in each transaction, and one transaction makes them
// visible; a crash before that one leaves nothing of them. done is told how many are
// staged; nil is allowed. Refusals: those of Send; bad_request beyond MaxBatch.
func (b *Box) SendBatch(ctx context.Context, list []Outgoing, done func(n int)) ([]Sent, error) {
	if len(list) > MaxBatch {
		return nil, refusal.New(refusal.BadRequest, fmt.Sprintf("the batch has %d messages", len(list)),
			fmt.Sprintf("a batch has at most %d", MaxBatch), "send it in parts")
	}
	now := b.wall()
	drafts := make([]*draft, len(list))
	for i, m := range list {
		d, err := b.draft(m, now)
		if err != nil {
			return nil, &BatchError{i, err}
		}
		drafts[i] = d
	}
	steps := batchSteps(drafts)
	if len(steps) <= 1 {
		return b.sendAtOnce(ctx, drafts)
	}
	return b.sendStaged(ctx, steps, done)
}

// batchSteps cuts a batch into what one transaction can hold.
func batchSteps(drafts []*draft) (steps [][]*draft) {
	size := 0
	for i, d := range drafts {
		last := len(steps) - 1
		if i == 0 || len(steps[last]) == batchStep || size+len(d.encoded) > batchBytes {
			steps, size = append(steps, nil), 0
			last++
		}
		steps[last] = append(steps[last], d)
		size += len(d.encoded)
	}
	return steps
}

// sendAtOnce sends what fits into one transaction.
func (b *Box) sendAtOnce(ctx context.Context, drafts []*draft) ([]Sent, error) {
	sent, err := b.batchStep(ctx, drafts, 0, New, Ref{}, nil)
	if err != nil {
		return nil, err
	}
	for i, d := range drafts {
		b.visibleNow(d, sent[i])
	}
	return sent, nil
}

// batchStep writes one step of a batch, whose first message is number first of it.
// and, where it is not nil, is done in the same transaction.
func (b *Box) batchStep(ctx context.Context, step []*draft, first int, s State, parent Ref, and func(store.Tx)) ([]Sent, error) {
	sent := make([]Sent, len(step))
	err := b.store.Update(ctx, func(tx store.Tx) error {
		for i, d := range step {
			one, err := b.sendTx(tx, d, s, parent)
			if err != nil {
				return &BatchError{first + i, err}
			}
			sent[i] = one
		}
		if and != nil {
			and(tx)
		}
		return nil
	})
	return sent, err
}

// sendStaged stages the steps of a batch, and then makes them visible by one write.
// Until then what is pending of it says that they are to be removed.
func (b *Box) sendStaged(ctx context.Context, steps [][]*draft, done func(n int)) ([]Sent, error) {
	var parent Ref
	err := b.store.Update(ctx, func(tx store.Tx) error {
		parent = Ref{ID: ID(tx.Next()), Token: fence.Token(tx.Mint("batch"))}
		tx.Put(claimKey(spacePending, parent), []byte{byte(discardStaged)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sent []Sent
	for i, step := range steps {
		var and func(store.Tx)
		if i == len(steps)-1 {
			and = func(tx store.Tx) { tx.Put(claimKey(spacePending, parent), []byte{byte(publishStaged)}) }
		}
		part, err := b.batchStep(ctx, step, len(sent), staged, parent, and)
		if err != nil {
			if !refusal.Has(err, refusal.OutcomeUnknown) {
				_, err2 := b.finishNow(context.WithoutCancel(ctx), parent, discardStaged)
				if err2 != nil {
					b.log.Error("a refused batch was not removed", "err", err2)
				}
			}
			return nil, err
		}
		sent = append(sent, part...)
		if done != nil {
			done(len(sent))
		}
	}
	_, err = b.finishNow(context.WithoutCancel(ctx), parent, publishStaged)
	return sent, err
}

// An Import is a message as another store, or this one, had it.
type Import struct {
	Outgoing
	State   State // NEW, DONE, DEAD or PARKED; CLAIMED comes in as PARKED
	Result  []byte
	Failure LastFailure // how its last attempt failed; a zero Category is none
	KeyFree bool        // it has a key and holds it no more: nothing is a duplicate of it
}

// importStep bounds the messages that one transaction of an import writes.
const importStep = 6

// Import writes messages in the order given, under new ids, some in each
// transaction, and returns what became of those that are durable. It stops at the
// first that is refused and returns its *BatchError; all before it are durable, and
// nothing of it or after it. A message that was CLAIMED is PARKED: how that attempt ended, or will,
// is not known here. Ended ones are kept from now on, and have no receipts.
func (b *Box) Import(ctx context.Context, list []Import) (sent []Sent, err error) {
	now := b.wall()
	drafts := make([]*draft, 0, len(list))
	var bad error
	for i, m := range list {
		d, err := b.draft(m.Outgoing, now)
		if err != nil {
			bad = &BatchError{i, err}
			break
		}
		d.keyFree = m.KeyFree
		drafts = append(drafts, d)
	}
	size, from := 0, 0
	for i, d := range drafts {
		if size += len(d.encoded) + len(list[i].Result); i+1 < len(drafts) && i+1-from < importStep &&
			size+len(drafts[i+1].encoded)+len(list[i+1].Result) <= batchBytes {
			continue
		}
		part, err := b.importStep(ctx, drafts[from:i+1], list[from:i+1], from)
		if which, ok := errors.AsType[*BatchError](err); ok && which.Index > from {
			// Nothing of that transaction was written: once more, up to the one
			// that is refused.
			var again error
			if part, again = b.importStep(ctx, drafts[from:which.Index], list[from:which.Index], from); again != nil {
				err = again
			}
		}
		sent = append(sent, part...)
		if err != nil {
			return sent, err
		}
		size, from = 0, i+1
	}
	return sent, bad
}

func (b *Box) importStep(ctx context.Context, drafts []*draft, list []Import, first int) ([]Sent, error) {
	sent := make([]Sent, len(list))
	ends := make([]ending, len(list))
	err := b.store.Update(ctx, func(tx store.Tx) (err error) {
		clear(ends)
		for i, d := range drafts {
			if sent[i], err = b.sendTx(tx, d, New, Ref{}); err == nil && list[i].State != New && !sent[i].Duplicate {
				ends[i], err = b.importEndedTx(tx, sent[i].ID, list[i], d.now.UTC())
			}
			if err != nil {
				return &BatchError{first + i, err}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, d := range drafts {
		if ends[i].ref.ID != 0 {
			b.fold(ends[i])
			b.arrivals.tell(sent[i].ID, d.to)
		} else {
			b.visibleNow(d, sent[i])
		}
	}
	return sent, nil
}

// importEndedTx gives a message that has just been written the state that it had.
func (b *Box) importEndedTx(tx store.Tx, id ID, m Import, at time.Time) (ending, error) {
	rec, err := b.get(tx, id)
	if err != nil {
		return ending{}, err
	}
	to := m.State
	if to == Claimed {
		to = Parked
	}
	rec.failure = m.Failure
	rec.failure.Reason = protocol.Cut(printable(m.Failure.Reason), 512)
	if to == Done && m.Result != nil {
		tx.Put(idKey(spaceResult, id), encodeResult(m.Result, false))
	}
	b.moveTx(tx, rec, to, at)
	return ending{ref: Ref{ID: id}, to: rec.to, state: to, purgeAt: rec.purgeAt}, nil
}
