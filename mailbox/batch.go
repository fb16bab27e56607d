package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
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
	var sent []Sent
	var err error
	if steps := batchSteps(drafts); len(steps) <= 1 {
		sent, err = b.sendAtOnce(ctx, drafts)
	} else {
		sent, err = b.sendStaged(ctx, steps, done)
	}
	if err != nil {
		return nil, b.ownKey(ctx, beyondRoom(err, drafts), drafts)
	}
	return sent, nil
}

// beyondRoom is err, the refusal of a batch; where the inbox is full that has not room for
// the batch even when it is empty, it says that, for no waiting changes it. A key makes a
// message perhaps a duplicate, which takes no room: those with one are not counted.
func beyondRoom(err error, drafts []*draft) error {
	which, ok := errors.AsType[*BatchError](err)
	if !ok || !refusal.Has(err, refusal.InboxFull) {
		return err
	}
	full, n := drafts[which.Index], int64(0)
	for _, d := range drafts {
		if d.to == full.to && d.content.key == "" {
			n++
		}
	}
	if n <= full.limit {
		return err
	}
	return &BatchError{which.Index, refusal.New(refusal.InboxFull, "the inbox of "+full.to+" has no room for the batch",
		fmt.Sprintf("%d messages of the batch are to it, and its limit is %d", n, full.limit),
		fmt.Sprintf("send at most %d at a time, or raise inbox.limit", full.limit))}
}

// ownKey is err, the refusal of a batch; where it is for a key that an earlier message of the
// same batch has it says which one. Nothing of the batch was sent, so that there is no message
// with that key to look at, and what it was called is the name of another one next.
func (b *Box) ownKey(ctx context.Context, err error, drafts []*draft) error {
	which, ok := errors.AsType[*BatchError](err)
	if !ok || !refusal.Has(err, refusal.DuplicateKey) {
		return err
	}
	d := drafts[which.Index]
	first := slices.IndexFunc(drafts[:which.Index], func(one *draft) bool { return one.to == d.to && one.content.key == d.content.key })
	if first < 0 {
		return err
	}
	held := false // by a message that was there before
	if lost := b.store.View(context.WithoutCancel(ctx), func(r store.Reader) error {
		held = r.Get(dedupKey(d.to, d.content.key)) != nil
		return nil
	}); lost != nil || held {
		return err
	}
	return &BatchError{which.Index, refusal.New(refusal.DuplicateKey, fmt.Sprintf("the key %s is held by message %d of the batch", quote(d.content.key), first+1),
		"that message says something else", "give each a key of its own, or leave one of the two out: nothing was sent")}
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
	parent, err := b.beginStaged(ctx)
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
			b.discard(ctx, parent, err)
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

// beginStaged makes a parent for messages that are staged outside of any claim. Until
// another write says otherwise they are to be removed, should a crash come between.
func (b *Box) beginStaged(ctx context.Context) (parent Ref, err error) {
	err = b.store.Update(ctx, func(tx store.Tx) error {
		parent = Ref{ID: ID(tx.Next()), Token: fence.Token(tx.Mint("batch"))}
		tx.Put(claimKey(spacePending, parent), []byte{byte(discardStaged)})
		return nil
	})
	return parent, err
}

// discard removes what was staged under parent, after err, unless that leaves it to a
// restart.
func (b *Box) discard(ctx context.Context, parent Ref, err error) {
	if refusal.Has(err, refusal.OutcomeUnknown) {
		return
	}
	if _, err := b.finishNow(context.WithoutCancel(ctx), parent, discardStaged); err != nil {
		b.log.Error("what was staged and then refused was not removed", "err", err)
	}
}
