package mailbox

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// An Import is a message as another store, or this one, had it.
type Import struct {
	Outgoing
	ID              string    // that it had; kept in a header, where there is room for one more; "" = not known
	LapsesAt        time.Time // when its time to live is over; zero: TTL from now
	State           State     // NEW, DONE, DEAD or PARKED; CLAIMED comes in as PARKED
	Result          []byte
	ResultTruncated bool
	Failure         LastFailure // how its last attempt failed; a zero Category is none
	KeyFree         bool        // it has a key and holds it no more: nothing is a duplicate of it
}

// importStep bounds the messages that one transaction of an import writes; importBytes
// is what it holds of one of them that has ended.
const (
	importStep  = 6
	importBytes = MaxBody + 64<<10
)

// resultSize is how many bytes of result m is stored with.
func (m *Import) resultSize() int {
	if m.State != Done {
		return 0
	}
	return len(m.Result)
}

// outgoing is m as it is sent, with its former id among the headers.
func (m *Import) outgoing() Outgoing {
	out := m.Outgoing
	if m.ID == "" {
		return out
	}
	with := maps.Clone(m.Headers)
	if with == nil {
		with = map[string]string{}
	}
	with[protocol.HeaderImportedID] = m.ID
	if headersFit(with) {
		out.Headers = with
	}
	return out
}

// maxCategory bounds the category of a failure that is imported, in bytes.
const maxCategory = 64

// possible refuses what no message has.
func (m *Import) possible(now time.Time) error {
	for _, c := range []byte(m.Failure.Category) {
		if (c < 'a' || c > 'z') && c != '_' || len(m.Failure.Category) > maxCategory {
			return refusal.New(refusal.BadRequest, "the message cannot be imported: the category of its last failure is none",
				"it is "+quote(string(m.Failure.Category)), "give one as inbox export writes it, such as timeout, or no last_failure")
		}
	}
	if m.LapsesAt.Sub(now) > maxSpan {
		return refusal.New(refusal.BadRequest, "the message cannot be imported: the end of its time to live is too far away",
			"it may be a hundred years from now at most", "correct that")
	}
	return nil
}

// Import writes messages in the order given, under new ids, some in each
// transaction, and returns what became of those that are durable. It stops at the
// first that is refused and returns its *BatchError; all before it are durable, and
// nothing of it or after it. A message that was CLAIMED is PARKED: how that attempt ended,
// or will, is not known here. Ended ones are kept from now on, and have no receipts.
func (b *Box) Import(ctx context.Context, list []Import) (sent []Sent, err error) {
	now := b.wall()
	drafts := make([]*draft, 0, len(list))
	var bad error
	for i, m := range list {
		d, err := b.draft(m.outgoing(), now)
		if err == nil {
			err = m.possible(now)
		}
		if err != nil {
			bad = &BatchError{i, err}
			break
		}
		d.keyFree = m.KeyFree
		if !m.LapsesAt.IsZero() {
			d.lapsesAt = m.LapsesAt.UTC()
		}
		if m.State != New {
			d.limit = 0 // it takes no place of those who wait
		}
		drafts = append(drafts, d)
	}
	size, from := 0, 0
	for i, d := range drafts {
		if size += len(d.encoded) + list[i].resultSize(); i+1 < len(drafts) && i+1-from < importStep &&
			size+len(drafts[i+1].encoded)+list[i+1].resultSize() <= batchBytes {
			continue
		}
		write := b.importStep
		if len(d.encoded)+list[i].resultSize() > importBytes { // then it is the only one
			write = b.importLarge
		}
		part, err := write(ctx, drafts[from:i+1], list[from:i+1], from)
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

// importLarge is importStep of one message whose content and result are more than one
// transaction holds: it is staged first, and the second transaction gives it its state. A
// crash in between leaves nothing of it.
func (b *Box) importLarge(ctx context.Context, drafts []*draft, list []Import, first int) ([]Sent, error) {
	parent, err := b.beginStaged(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := b.batchStep(ctx, drafts, first, staged, parent, nil)
	if err != nil || sent[0].Duplicate {
		b.discard(ctx, parent, err)
		if err != nil {
			return nil, err
		}
		return sent, nil
	}
	d, id := drafts[0], sent[0].ID
	var end ending
	err = b.store.Update(ctx, func(tx store.Tx) (err error) {
		tx.Delete(stagedKey(parent, id))
		tx.Delete(claimKey(spacePending, parent))
		if end, err = b.importEndedTx(tx, id, list[0], d.now.UTC()); err != nil {
			return &BatchError{first, err}
		}
		return nil
	})
	if err != nil {
		b.discard(ctx, parent, err)
		return nil, err
	}
	b.fold(end)
	b.arrivals.tell(id, d.to)
	return sent, nil
}

// importEndedTx gives a message that has just been written the state that it had.
func (b *Box) importEndedTx(tx store.Tx, id ID, m Import, at time.Time) (ending, error) {
	rec, err := b.mustRead(tx, id)
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
		tx.Put(idKey(spaceResult, id), encodeResult(nil, m.Result, m.ResultTruncated))
	}
	b.moveTx(tx, rec, to, at)
	return ending{ref: Ref{ID: id}, to: rec.to, state: to, purgeAt: rec.purgeAt}, nil
}
