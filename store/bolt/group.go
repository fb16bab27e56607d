package bolt

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sovereign-run/sovereign/store"
)

// group is group commit without a goroutine, a timer or a cap of its own. Who
// comes while no commit runs leads: commits on its own goroutine, for itself and
// all who wait by then. Who comes meanwhile waits; the first of those leads the
// next commit.
type group struct {
	mu      sync.Mutex
	queue   []*call // guarded by mu
	spare   []*call // guarded by mu: the last batch's slice, for reuse
	leading bool    // guarded by mu
}

// A call is one Update on its way through the group.
type call struct {
	fn    func(store.Tx) error
	stage atomic.Int32

	essential bool          // see store.Essential
	wake      chan struct{} // holds one: lead, or answered
	lead      bool          // written before wake: the caller leads now

	// The answer, written before wake.
	err   error
	panic any  // the function's panic, to be raised on the caller's goroutine
	exit  bool // the function called runtime.Goexit

	behind bool // it ran over writes of its batch; owned by the leader
}

// The stages of a call. Only a waiting call may be given up by its caller.
const (
	callWaiting int32 = iota
	callTaken         // its function may run
	callGone          // its caller has left
)

// join queues c. It reports whether the caller leads now.
func (g *group) join(c *call) bool {
	g.queue = append(g.queue, c)
	if g.leading {
		return false
	}
	g.leading = true
	return true
}

// wait blocks until c is answered or leads, or ctx is done before either. It
// returns ctx's error in that case: c's function does not run.
func (c *call) wait(ctx context.Context) error {
	if ctx.Done() == nil {
		<-c.wake
		return nil
	}
	select {
	case <-c.wake:
		return nil
	case <-ctx.Done():
		if c.stage.CompareAndSwap(callWaiting, callGone) {
			return context.Cause(ctx)
		}
		<-c.wake
		return nil
	}
}

// waiting returns how many calls wait.
func (g *group) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// take returns all calls that wait, without those whose callers left.
func (g *group) take() []*call {
	g.mu.Lock()
	batch := g.queue
	g.queue, g.spare = g.spare[:0], nil
	g.mu.Unlock()
	n := 0
	for _, c := range batch {
		if c.stage.CompareAndSwap(callWaiting, callTaken) || c.lead {
			batch[n] = c
			n++
		}
	}
	clear(batch[n:])
	return batch[:n]
}

// hand passes the lead to the first call that waits, or ends it, and then wakes
// the callers of batch but own. The next leader goes first: its commit can start
// while the others are being woken.
func (g *group) hand(batch []*call, own *call) {
	g.mu.Lock()
	g.leading = false
	for _, c := range g.queue {
		if c.stage.CompareAndSwap(callWaiting, callTaken) {
			g.leading = true
			c.lead = true
			c.wake <- struct{}{}
			break
		}
	}
	g.mu.Unlock()
	for _, c := range batch {
		if c != own {
			c.wake <- struct{}{}
		}
	}
	clear(batch)
	g.mu.Lock()
	g.spare = batch[:0]
	g.mu.Unlock()
}

// reset makes c ready for another Update.
func (c *call) reset() {
	c.fn, c.err, c.panic = nil, nil, nil
	c.lead, c.exit, c.essential = false, false, false
	c.stage.Store(callWaiting)
}
