package mailbox

import "sync"

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
