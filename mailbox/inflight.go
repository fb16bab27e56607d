package mailbox

import (
	"context"
	"slices"
	"sync"

	"github.com/sovereign-run/sovereign/fence"
)

// inFlight makes requests that must not overlap wait for each other: repeats of
// one claim request, and completions of one claim that carry sends.
type inFlight struct {
	mu   sync.Mutex // guards busy and the turns in it
	busy map[any]*turn
}

// A turn is a key in use, and who waits for it, the first one first. Each is told by
// the close of its channel that it has the turn.
type turn struct {
	next []chan struct{}
}

func newInFlight() *inFlight { return &inFlight{busy: map[any]*turn{}} }

// lock waits for the turn of key and returns the function that ends it.
func (f *inFlight) lock(key any) (unlock func()) {
	unlock, _ = f.lockWithin(key, nil)
	return unlock
}

// lockWithin is lock. Where it has to wait it calls waits, if there is one, and waits
// within that context; it returns the error of waits or the context's cause.
func (f *inFlight) lockWithin(key any, waits func() (context.Context, error)) (unlock func(), err error) {
	unlock = func() { f.unlock(key) }
	mine := f.enter(key)
	if mine == nil {
		return unlock, nil
	}
	ctx := context.Background()
	if waits != nil {
		if ctx, err = waits(); err != nil {
			f.leave(key, mine)
			return nil, err
		}
	}
	select {
	case <-mine:
		return unlock, nil
	case <-ctx.Done():
		f.leave(key, mine)
		return nil, context.Cause(ctx)
	}
}

// enter takes the turn of key and returns nil; where another has it, it returns what
// is closed once it is the caller's.
func (f *inFlight) enter(key any) (mine chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.busy[key]
	if t == nil {
		f.busy[key] = &turn{}
		return nil
	}
	mine = make(chan struct{})
	t.next = append(t.next, mine)
	return mine
}

// leave ends that the caller waits for key: the turn is handed on where it has got it
// meanwhile.
func (f *inFlight) leave(key any, mine chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.busy[key]
	if i := slices.Index(t.next, mine); i >= 0 {
		t.next = slices.Delete(t.next, i, i+1)
		return
	}
	f.unlockLocked(key)
}

func (f *inFlight) unlock(key any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unlockLocked(key)
}

func (f *inFlight) unlockLocked(key any) {
	t := f.busy[key]
	if len(t.next) == 0 {
		delete(f.busy, key)
		return
	}
	close(t.next[0])
	t.next = t.next[1:]
}

// grants counts the claims of each process that are on their way between their
// transaction and the index. Leave waits for them: once a process's lease is
// released no new one can be granted, but one that was may not be in the index
// yet.
type grants struct {
	mu     sync.Mutex // guards onWay
	onWay  map[fence.Process]int
	landed *sync.Cond // of mu
}

func newGrants() *grants {
	g := &grants{onWay: map[fence.Process]int{}}
	g.landed = sync.NewCond(&g.mu)
	return g
}

// enter says that a claim of p begins; leave, that the index knows of it.
func (g *grants) enter(p fence.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onWay[p]++
}

func (g *grants) leave(p fence.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.onWay[p]--; g.onWay[p] == 0 {
		delete(g.onWay, p)
		g.landed.Broadcast()
	}
}

// wait returns once no claim of p is on its way.
func (g *grants) wait(p fence.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.onWay[p] > 0 {
		g.landed.Wait()
	}
}
