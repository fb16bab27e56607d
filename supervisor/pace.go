package supervisor

import "context"

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
	turns    chan struct{} // holds one for each that is worked on, or may not be
	withheld int           // of turns; whoever holds Supervisor.changing uses it
}

func newPace() pace { return pace{turns: make(chan struct{}, maxPace)} }

// limit has at most n be worked on, from 1 to maxPace. It does not wait for those that
// are: then it withholds fewer.
func (p *pace) limit(n int) {
	withhold := maxPace - min(max(n, 1), maxPace)
	for p.withheld > withhold {
		<-p.turns
		p.withheld--
	}
	for p.withheld < withhold {
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

func (p *pace) leave() { <-p.turns }
