package supervisor

import "context"

// maxPace bounds the starts and ends that are worked on at one time: enough to
// fill a commit of the store, few enough that a thousand at once do not take a
// thousand grown stacks.
const maxPace = 64

// A pace is how many more may be worked on.
type pace chan struct{}

func newPace() pace { return make(pace, maxPace) }

// enter waits for its turn, and reports whether it came before ctx ended. Where it
// did, leave is called afterwards.
func (p pace) enter(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p pace) leave() { <-p }
