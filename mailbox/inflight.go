package mailbox

import (
	"sync"

	"github.com/sovereign-run/sovereign/fence"
)

// inFlight makes requests that must not overlap wait for each other: repeats of
// one claim request, and completions of one claim that carry sends.
type inFlight struct {
	mu   sync.Mutex // guards busy
	busy map[any]*turn
}

// A turn is one key in use and those who wait for it.
type turn struct {
	mu    sync.Mutex
	users int // guarded by inFlight.mu
}

func newInFlight() *inFlight { return &inFlight{busy: map[any]*turn{}} }

// lock waits for the turn of key and returns the function that ends it.
func (f *inFlight) lock(key any) (unlock func()) {
	f.mu.Lock()
	t := f.busy[key]
	if t == nil {
		t = &turn{}
		f.busy[key] = t
	}
	t.users++
	f.mu.Unlock()
	t.mu.Lock()
	return func() {
		t.mu.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(f.busy, key)
		}
	}
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
