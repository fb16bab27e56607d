package supervisor

import (
	"math"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// delay is the wait before start n in a row (from 0) that follows an end:
// initial × factor^n, at most max, varied by ± jitter. draw is a random number
// from [0, 1).
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

// stable reports whether a process that ran for uptime has shown that it can:
// the backoff begins anew. It is as long as the window of intensity, so that
// what is forgiven here is forgotten there too.
func stable(i config.Intensity, uptime time.Duration) bool { return uptime >= i.Within }
