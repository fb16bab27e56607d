package supervisor

import (
	"sync"

	"github.com/sovereign-run/sovereign/config"
)

// changes tells that some slot stands otherwise than before.
type changes struct {
	mu   sync.Mutex
	next chan struct{} // mu guards it; nil while nobody waits
}

// wait returns a channel that is closed at the next change.
func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Changes returns a channel that is closed when Status next changes in more than
// times. Ask for it before Status, so that nothing is missed in between.
func (sup *Supervisor) Changes() <-chan struct{} { return sup.changes.wait() }

// Spawning reports whether a long-lived process is being made just now. It costs next
// to nothing, and while it is true not everything is up.
func (sup *Supervisor) Spawning() bool {
	for _, a := range sup.actors() {
		for _, s := range a.all() {
			if s.seen.Load().at == spawning && s.spec().Mode != config.Task {
				return true
			}
		}
	}
	return false
}

// Recovered returns a channel that is closed once Run has recovered what was on
// record and has begun to start what is wanted.
func (sup *Supervisor) Recovered() <-chan struct{} { return sup.running }
