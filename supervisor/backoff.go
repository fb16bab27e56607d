package supervisor

import (
	"math"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// delay is the wait before the next start, n being how many ends in a row have
// been waited for: initial × factor^n, at most max, varied by ± jitter. draw is a
// random number from [0, 1).
func delay(b config.Backoff, n int, draw float64) time.Duration {
	if b.Initial <= 0 {
		return 0
	}
	d := float64(b.Initial) * math.Pow(max(b.Factor, 1), float64(n))
	if limit := float64(b.Max); b.Max > 0 && !(d <= limit) {
		d = limit
	}
	d *= 1 + b.Jitter*(2*draw-1)
	if !(d < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(max(d, 0))
}

// A streak is how many ends in a row a slot has had without a stable run in
// between. The zero value has had none.
type streak int

// wait counts an end, and returns the wait before the next start. The first end of a
// process is not waited for: most often it is the only one. A start that failed
// is: nothing can have changed at once.
func (k *streak) wait(b config.Backoff, started bool, draw float64) time.Duration {
	n := int(*k)
	*k++
	if !started {
		return delay(b, n, draw)
	}
	if n == 0 {
		return 0
	}
	return delay(b, n-1, draw)
}

// ran ends the streak where a process that ran for uptime has shown that it can: it
// ran longer than the longest wait.
func (k *streak) ran(b config.Backoff, uptime time.Duration) {
	if uptime >= b.Max {
		*k = 0
	}
}
