package supervisor

import "sync"

// jobs are goroutines that are joined together. The zero value takes some.
type jobs struct {
	mu     sync.RWMutex
	closed bool // mu guards it
	group  sync.WaitGroup
}

// run runs f in a goroutine, and reports whether it does: not after close.
func (j *jobs) run(f func()) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return false
	}
	j.group.Go(f)
	return true
}

func (j *jobs) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// wait returns when all have ended. Call close before.
func (j *jobs) wait() { j.group.Wait() }
