package mailbox

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// stale is what is known of marks that stand for nothing any more.
type stale struct {
	alarm *alarm
	after int64        // how many ended messages have marks looked at
	ended atomic.Int64 // messages that ended and for which no marks have been looked at

	// Of the goroutine that looks:
	due   bool   // it is not just after the start
	begun bool   // all marks were looked at once
	at    []byte // the next mark to look at, nil = the first
}

// unmarkAfter is after how many ended messages marks are looked at. Each can have left
// a mark for itself, and one for its claims, behind.
const unmarkAfter = 8192

// unmarkLook bounds the marks that one transaction looks at.
const unmarkLook = 256

// unmarkRest is how long after a start the first look waits: others have something to
// read and to do by then.
const unmarkRest = time.Second

// unmarkPause is how long marks are left alone while the disk is full.
const unmarkPause = 10 * time.Minute

// ends counts messages that are not open any more.
func (s *stale) ends(n int) {
	if now := s.ended.Add(int64(n)); now >= s.after && now-int64(n) < s.after {
		s.alarm.again()
	}
}

// tidyBlocks removes the marks that stand for nothing. First it looks at all of them,
// since nobody has counted what ended before this start; then at some in turn, at twice
// as many as messages have ended, so that they do not become more and more however old
// the oldest message is. What has ended counts until that was done, so that a look that
// failed is made again.
func (b *Box) tidyBlocks(ctx context.Context) (time.Time, error) {
	s := &b.stale
	if !s.due {
		s.due = true
		return b.wall().Add(unmarkRest), nil
	}
	err := error(nil)
	if !s.begun {
		err = b.unmark(ctx, math.MaxInt)
		s.begun = err == nil
	}
	for err == nil {
		n := s.ended.Load()
		if n < s.after {
			return time.Time{}, nil
		}
		if err = b.unmark(ctx, 2*int(n)); err == nil {
			s.ended.Add(-n)
		}
	}
	if refusal.Has(err, refusal.DiskFull) {
		return b.wall().Add(unmarkPause), nil // it is not urgent
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
			empty, next, looked = empty[:0], nil, 0
			if !b.marked(r) {
				return nil // Load has yet to say what the marks of this store mean
			}
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
