package mailbox

import (
	"math"
	"time"
)

// An afterEnd says where a message goes when an attempt of it has ended.
type afterEnd struct {
	state    State
	attempts int           // charged starts, this one included where it is charged
	delay    time.Duration // of a NEW message, until it may run again
	counted  bool          // the attempt was charged
	status   Status
}

// follow decides what the end of an attempt does to its message: a pure
// function of the verdict, the charged starts so far, the actor's policy, and a
// random share from 0 to 1 for the jitter. (P3.7, P3.9, P4.7)
func follow(o Outcome, attempts int, a Actor, random float64) afterEnd {
	switch o.Verdict {
	case Complete:
		return afterEnd{state: Done, attempts: attempts + 1, counted: true, status: Completed}
	case FailAttempt:
		n := attempts + 1
		out := afterEnd{state: New, attempts: n, counted: true, status: Failed}
		switch {
		case n >= a.Retry.MaxAttempts:
			out.state = Dead
		case o.Delay != nil:
			out.delay = min(max(0, *o.Delay), maxSpan)
		default:
			out.delay = backoff(a.Retry, n, random)
		}
		return out
	case Unreported:
		n := attempts + 1
		out := afterEnd{state: New, attempts: n, counted: true, status: Failed}
		switch {
		case a.Park || o.park:
			out.state = Parked
		case n >= a.Retry.MaxAttempts:
			out.state = Dead
		default:
			out.delay = backoff(a.Retry, n, random)
		}
		return out
	case Defer:
		return afterEnd{state: New, attempts: attempts, delay: backoff(a.Retry, 1, random), status: Released}
	case Interrupt:
		if a.Park {
			return afterEnd{state: Parked, attempts: attempts, status: Released}
		}
		return afterEnd{state: New, attempts: attempts, status: Released}
	case Kill:
		return afterEnd{state: Dead, attempts: attempts + 1, counted: true, status: Failed}
	default: // GiveBack
		return afterEnd{state: New, attempts: attempts, status: Released}
	}
}

// backoff is the wait after the n-th charged attempt: initial × factor^(n-1), at
// most max, varied by ± jitter. random is from 0 to 1.
func backoff(r Retry, n int, random float64) time.Duration {
	d := float64(r.Initial) * math.Pow(max(1, r.Factor), float64(max(0, n-1)))
	d = min(d, float64(r.Max))
	d *= 1 + r.Jitter*(2*random-1)
	return time.Duration(max(0, min(d, float64(maxSpan))))
}

// priority bounds.
const (
	minPriority = -100
	maxPriority = 100
)
