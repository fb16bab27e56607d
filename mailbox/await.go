package mailbox

import (
	"context"
	"sync"
)

// ends tells those who wait for a message that it has ended or is gone.
type ends struct {
	mu      sync.Mutex // guards waiting
	waiting map[ID]*endWait
}

type endWait struct {
	done  chan struct{}
	users int
}

func newEnds() *ends { return &ends{waiting: map[ID]*endWait{}} }

func (e *ends) tell(id ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waiting[id]; w != nil {
		delete(e.waiting, id)
		close(w.done)
	}
}

func (e *ends) wait(id ID) (done <-chan struct{}, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[id]
	if w == nil {
		w = &endWait{done: make(chan struct{})}
		e.waiting[id] = w
	}
	w.users++
	return w.done, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.users--; w.users == 0 && e.waiting[id] == w {
			delete(e.waiting, id)
		}
	}
}

// Await returns all that is known of a message once it is DONE, DEAD or PARKED.
// It is refused, message_missing, where the message is gone, and returns the
// context's error, with what is known, when ctx ends first.
func (b *Box) Await(ctx context.Context, id ID) (Detail, error) {
	for {
		done, leave := b.ends.wait(id)
		d, err := b.Show(context.WithoutCancel(ctx), id)
		if err != nil || d.State == Done || d.State == Dead || d.State == Parked {
			leave()
			return d, err
		}
		select {
		case <-done:
			leave()
		case <-ctx.Done():
			leave()
			return d, context.Cause(ctx)
		}
	}
}
