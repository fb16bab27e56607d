package mailbox

import (
	"context"
	"sync"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// ends tells those who wait for a message that it has ended or is gone.
type ends struct {
	mu      sync.Mutex // guards waiting
	waiting map[ID]*endWait
}

type endWait struct {
	done  chan struct{}
	last  *Detail // once done: what was known of a message that is gone; nil: look
	users int
}

func newEnds() *ends { return &ends{waiting: map[ID]*endWait{}} }

// tell says that a message has ended or is gone. last is all that was known of one that
// is gone, nil for one that can be looked at.
func (e *ends) tell(id ID, last *Detail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waiting[id]; w != nil {
		w.last = last
		delete(e.waiting, id)
		close(w.done)
	}
}

// awaited reports whether anybody waits for a message.
func (e *ends) awaited(id ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting[id] != nil
}

func (e *ends) wait(id ID) (w *endWait, leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w = e.waiting[id]
	if w == nil {
		w = &endWait{done: make(chan struct{})}
		e.waiting[id] = w
	}
	w.users++
	return w, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.users--; w.users == 0 && e.waiting[id] == w {
			delete(e.waiting, id)
		}
	}
}

// Await returns all that is known of a message once it is DONE, DEAD or PARKED.
// It is refused, message_missing, where the message is gone, with what was known of
// it before, and returns the context's error, with what is known, when ctx ends first.
func (b *Box) Await(ctx context.Context, id ID) (Detail, error) { return b.await(ctx, id, Detail{}) }

// await is Await of a message of which last is known already.
func (b *Box) await(ctx context.Context, id ID, last Detail) (Detail, error) {
	for {
		w, leave := b.ends.wait(id)
		d, err := b.Show(context.WithoutCancel(ctx), id)
		if err != nil || d.State == Done || d.State == Dead || d.State == Parked {
			leave()
			if err != nil {
				return last, err
			}
			return d, nil
		}
		last = d
		select {
		case <-w.done:
			leave()
			if w.last != nil {
				last = *w.last
			}
		case <-ctx.Done():
			leave()
			return d, context.Cause(ctx)
		}
	}
}

// AwaitSent is Await for a worker, of a message that its actor sent: any other is
// refused, permission_denied. The lease of h must be current when it asks, and still be
// when it is answered: what it learns then would be an instruction to a process whose
// place another has taken. Also where ctx has ended before anything was looked at, what is
// known, or why it is refused, comes with its error.
func (b *Box) AwaitSent(ctx context.Context, h fence.Holder, id ID) (Detail, error) {
	look := context.WithoutCancel(ctx) // ctx bounds the wait
	if err := b.checkLease(look, h); err != nil {
		return Detail{}, err
	}
	seen, err := b.Show(look, id)
	switch {
	case err != nil:
		return Detail{}, err
	case seen.From != h.Slot.Actor:
		return Detail{}, refusal.New(refusal.PermissionDenied, "message "+id.String()+" is not one that "+h.Slot.Actor+" sent",
			"a worker may wait for the end of what its own actor sent", "")
	}
	d, waited := b.await(ctx, id, seen)
	if err := b.checkLease(context.WithoutCancel(ctx), h); err != nil {
		return Detail{}, err
	}
	return d, waited
}

// checkLease returns nil while the lease of h is current, and the refusal that says why it
// is not.
func (b *Box) checkLease(ctx context.Context, h fence.Holder) error {
	return b.store.View(ctx, func(r store.Reader) error {
		_, err := b.leases.CheckTx(r, h, b.leases.Now())
		return err
	})
}
