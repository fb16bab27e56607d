package mailbox

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// stale is what is known of marks that stand for nothing any more.
type stale struct {
	alarm *alarm
	ended atomic.Int64 // messages that ended since marks were looked at
	at    []byte       // the next mark to look at, nil = the first; of the goroutine that looks
}

// unmarkAfter is after how many ended messages marks are looked at. Each can have left
// a mark for itself, and one for its claims, behind.
const unmarkAfter = 8192

// unmarkLook bounds the marks that one transaction looks at.
const unmarkLook = 256

// ends counts a message that is not open any more.
func (s *stale) ends() {
	if s.ended.Add(1) == unmarkAfter {
		s.alarm.again()
	}
}

// tidyBlocks removes the marks that stand for nothing, some of them in turn: it looks
// at twice as many as messages have ended, so that they do not become more and more
// however old the oldest message is.
func (b *Box) tidyBlocks(ctx context.Context) (time.Time, error) {
	if b.stale.ended.Load() < unmarkAfter {
		return time.Time{}, nil
	}
	err := b.unmark(ctx, 2*int(b.stale.ended.Swap(0)))
	if refusal.Has(err, refusal.DiskFull) {
		return time.Time{}, nil // it is not urgent
	}
	return time.Time{}, err
}

// unmark looks at up to so many marks, from where it stopped the last time to the last
// one, and then begins anew.
func (b *Box) unmark(ctx context.Context, most int) error {
	for most > 0 {
		var empty []mark
		var next []byte
		looked := 0
		err := b.store.View(ctx, func(r store.Reader) error {
			from := b.stale.at
			if from == nil {
				from = []byte{spaceBlock, 0} // behind blocksKey
			}
			r.Scan(from, nil, func(key, _ []byte) bool {
				if looked == min(most, unmarkLook) {
					next = bytes.Clone(key)
					return false
				}
				looked++
				if m, ok := parseMark(key, b.actors.name); ok && !b.bears(r, m) {
					empty = append(empty, m)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return err
		}
		for step := range slices.Chunk(empty, markStep) {
			if err := b.store.Update(ctx, func(tx store.Tx) error {
				for _, m := range step {
					// Looked at again: meanwhile a message may have come for it.
					if !b.bears(tx, m) {
						tx.Delete(m.key())
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		most -= looked
		if b.stale.at = next; next == nil {
			return nil
		}
	}
	return nil
}
