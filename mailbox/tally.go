package mailbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// A Tally is what has happened to one actor's messages since its box was opened.
type Tally struct {
	Sent   uint64              // became visible: duplicates and sends that still are staged are not counted
	Claims uint64              // granted; repeated answers to one claim are not counted
	Ends   map[Category]uint64 // of attempts, by how they ended; every category is there
}

// categories are those that an attempt can end in, in the order of tally.ends.
var categories = [...]Category{CategoryCompleted, CategoryWorkerLost, CategoryExitStatus, CategoryTimeout, CategoryClaimExpired,
	CategoryNoProgress, CategoryResultTooLarge, CategoryFailedByWorker, CategoryBadMessage, CategoryCancelled, CategoryStaleCompletion, CategoryReleased,
	CategoryDeferred, CategoryInterrupted}

type tally struct {
	sent, claims atomic.Uint64
	ended        atomic.Int64 // messages that ended since trim looked
	failing      atomic.Bool  // illness knows of a message that failed
	illness      illness
	enough       atomic.Int64 // how many of them make it look again; 0 = none
	ends         [len(categories)]atomic.Uint64
}

func (t *tally) end(c Category) {
	for i := range categories {
		if categories[i] == c {
			t.ends[i].Add(1)
		}
	}
}

// kept counts a message that has ended, and reports whether it is worth looking for
// those that are too many.
func (t *tally) kept() bool {
	enough := t.enough.Load()
	return t.ended.Add(1) >= enough && enough > 0
}

// looked begins the count anew.
func (t *tally) looked(enough int64) {
	t.ended.Store(0)
	t.enough.Store(enough)
}

// tallies counts what was committed, by actor. An actor that was removed keeps its
// tally: a count never goes back.
type tallies struct {
	mu      sync.RWMutex // guards byActor, not the tallies
	byActor map[string]*tally
}

func (t *tallies) of(actor string) *tally {
	t.mu.RLock()
	one := t.byActor[actor]
	t.mu.RUnlock()
	if one != nil {
		return one
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one = t.byActor[actor]; one == nil {
		if t.byActor == nil {
			t.byActor = map[string]*tally{}
		}
		one = &tally{}
		t.byActor[actor] = one
	}
	return one
}

// Tallies returns the tally of every actor on record that has a mailbox. It reads
// no store.
func (b *Box) Tallies() map[string]Tally {
	out := map[string]Tally{}
	for _, a := range b.actors.all() {
		if !a.Mailbox {
			continue
		}
		t := b.tallies.of(a.Name)
		one := Tally{Sent: t.sent.Load(), Claims: t.claims.Load(), Ends: map[Category]uint64{}}
		for i, c := range categories {
			one.Ends[c] = t.ends[i].Load()
		}
		out[a.Name] = one
	}
	return out
}

// Oldest returns, for each actor for which a message is ready, when the oldest of
// those was sent. Messages that wait for their time are not ready. Without Load
// it is empty. It reads one record for each actor, and
// the blocks that may have an older message and that nobody has read yet.
func (b *Box) Oldest(ctx context.Context) (sent map[string]time.Time, err error) {
	first, unread := b.index.oldest()
	for ; len(unread) > 0; first, unread = b.index.oldest() {
		for _, k := range unread {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err := b.readBlock(ctx, k); err != nil {
				return nil, err
			}
		}
	}
	err = b.store.View(ctx, func(r store.Reader) error {
		sent = map[string]time.Time{}
		for actor, id := range first {
			// One that was claimed or removed a moment ago leaves its actor out.
			rec, err := b.get(r, id)
			if err != nil || rec == nil || rec.state != New {
				continue
			}
			if c, err := decodeContent(id, r.Get(idKey(spaceContent, id))); err == nil {
				sent[actor] = c.createdAt
			}
		}
		return nil
	})
	return sent, err
}

// oldest returns the smallest id that is ready, for each actor that has one; or the
// blocks that are to be read first, some of them more than once.
func (x *index) oldest() (ids map[string]ID, unread []block) {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := map[string]ID{}
	for actor, q := range x.queues {
		for i := range q.levels {
			l := &q.levels[i]
			if k, ok := x.before(l); ok {
				unread = append(unread, k)
				continue
			}
			if len(l.ids.all) == 0 {
				continue
			}
			if id, ok := first[actor]; !ok || l.ids.all[0] < id {
				first[actor] = l.ids.all[0]
			}
		}
	}
	return first, unread
}
