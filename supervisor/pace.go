package supervisor

import (
	"context"
	"sync"
)

const (
	// maxPace bounds the starts and ends that are worked on at one time: enough to
	// fill a commit of the store, few enough that a thousand at once do not take a
	// thousand grown stacks.
	maxPace = 64
	// filesSpawn is how many descriptors a start takes that are closed after it: both
	// ends of what the child inherits, and its cgroup.
	filesSpawn = 8
)

// A pace is how many may be worked on.
type pace struct {
	turns chan struct{} // holds one for each that is worked on, or may not be

	mu       sync.Mutex
	withheld int // of turns; mu guards. Invariant: no more than it holds
	wanted   int // how many are to be withheld; mu guards
}

func newPace() *pace { return &pace{turns: make(chan struct{}, maxPace)} }

// limit has at most n be worked on, from 1 to maxPace. It does not wait for those that
// are: what they have too much is withheld as they leave.
func (p *pace) limit(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = maxPace - min(max(n, 1), maxPace)
	for p.withheld > p.wanted {
		<-p.turns
		p.withheld--
	}
	for p.withheld < p.wanted {
		select {
		case p.turns <- struct{}{}:
			p.withheld++
		default:
			return
		}
	}
}

// enter waits for its turn, and reports whether it came before ctx ended. Where it
// did, leave is called afterwards.
func (p *pace) enter(ctx context.Context) bool {
	select {
	case p.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withheld < p.wanted {
		p.withheld++ // its turn stays taken
		return
	}
	<-p.turns
}
