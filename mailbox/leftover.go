package mailbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
)

// A leftover is something pending that is still to be done: the disk was full
// when it was tried. It is on record as well, so that a crash forgets nothing.
type leftover struct {
	ref  Ref
	what pending
}

type leftovers struct {
	mu    sync.Mutex // guards all below
	jobs  []leftover
	added chan struct{} // closed and replaced when there is a new one
}

// restPause is the time between two tries.
const restPause = time.Second

func newLeftovers() *leftovers { return &leftovers{added: make(chan struct{})} }

func (l *leftovers) add(job leftover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.jobs, job) {
		return
	}
	l.jobs = append(l.jobs, job)
	close(l.added)
	l.added = make(chan struct{})
}

func (l *leftovers) take() (jobs []leftover, added <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs, l.jobs = l.jobs, nil
	return jobs, l.added
}

// finishRest tries all leftovers once. left says that some remain, to be tried
// again after restPause; added is closed when there are new ones.
func (b *Box) finishRest(ctx context.Context) (left bool, added <-chan struct{}) {
	jobs, added := b.rest.take()
	for i, job := range jobs {
		_, err := b.finish(ctx, job.ref, job.what)
		switch {
		case err == nil:
		case refusal.Has(err, refusal.OutcomeUnknown):
			return false, added // the store serves nothing more
		default:
			b.rest.mu.Lock()
			b.rest.jobs = append(jobs[i:], b.rest.jobs...)
			b.rest.mu.Unlock()
			return true, added
		}
	}
	return false, added
}
