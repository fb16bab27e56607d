package bolt

import (
	"sync"
	"sync/atomic"

	"github.com/sovereign-run/sovereign/refusal"
)

// fullness is whether updates that can wait (not store.Essential) find room. The leader
// says it, anybody may ask.
type fullness struct {
	full    atomic.Bool
	mu      sync.Mutex
	changed chan struct{} // guarded by mu: closed at the next change; nil: nobody asked
}

// Full reports whether the last update that was not essential was refused, disk_full,
// and returns a channel that is closed when that changes. It is only known anew with
// the next such update.
func (db *DB) Full() (full bool, changed <-chan struct{}) {
	f := &db.fullness
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.full.Load(), f.changed
}

// learn takes note of how it went with updates that were not essential: err is why they
// were refused, stored whether something of them was.
func (f *fullness) learn(err error, stored bool) {
	full := refusal.Has(err, refusal.DiskFull)
	if full == f.full.Load() || !full && !stored {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full.Store(full)
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}
