package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The ends that a worker can give to an attempt.
const (
	endComplete = "complete"
	endFail     = "fail"
	endDelay    = "fail with a delay"
	endDead     = "fail for good"
	endRelease  = "release"
	endForget   = "never settle"
	endCrash    = "crash"   // SIGKILL itself
	endDefer    = "defer"   // exit 75, a task's
	endBad      = "bad"     // exit 65, a task's
	endForever  = "forever" // work until the timeout
)

// A Behaviour is what a worker does with one attempt. It follows from the seed, the
// message and the attempt, whoever works on it.
type Behaviour struct {
	Work     time.Duration // how long it is busy
	Renew    bool          // whether it renews where it has to
	Staged   []Follow      // sent with the claim, before the work
	Direct   []Follow      // sent at once
	Carried  []Follow      // sent by the completion itself
	End      string
	Next     bool // the completion claims the next one
	Batch    bool // settled by `settle`
	Again    bool // the settle is repeated
	Other    bool // a while later another verb is tried
	Old      bool // then an old token is tried
	Nothing  bool // then token 0 is tried
	Spawn    bool // a descendant in a session of its own is left behind
	Progress bool
	Reclaim  bool // the held message is claimed again, by its id
}

// A Follow is a message that a worker sends.
type Follow struct {
	To    string
	Nonce string
	Key   string
}

// depth of a nonce is how many generations of follow-ups a message may have. It
// is the number before the slash.
func depth(nonce string) int {
	n, err := strconv.Atoi(nonce[:max(0, strings.IndexByte(nonce, '/'))])
	if err != nil {
		return 0
	}
	return n
}

// randomOf is the source of randomness that belongs to the parts.
func randomOf(seed uint64, parts ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// behave decides what is done with an attempt of a message. It is a pure function.
func behave(seed uint64, nonce string, attempt int, mode string) Behaviour {
	r := randomOf(seed, nonce, attempt, mode)
	chance := func(percent int) bool { return r.IntN(100) < percent }
	b := Behaviour{Work: time.Duration(r.IntN(120)) * time.Millisecond, Renew: chance(80), Next: chance(40), Batch: chance(20),
		Again: chance(20), Other: chance(30), Old: chance(10), Nothing: chance(5), Spawn: chance(8), Progress: chance(20), Reclaim: chance(10)}
	if chance(8) {
		b.Work = time.Duration(500+r.IntN(4500)) * time.Millisecond
	}
	if attempt > 1 && chance(60) { // so that those before it come while it is at work
		b.Work += time.Duration(200+r.IntN(900)) * time.Millisecond
	}
	if d := depth(nonce); d > 0 {
		follow := func(how string, n int) Follow {
			// Without a key each attempt sends a message of its own.
			return Follow{To: recipient(r.IntN(1 << 20)), Nonce: fmt.Sprintf("%d/%s.%d%s%d", d-1, nonce[strings.IndexByte(nonce, '/')+1:], attempt, how, n)}
		}
		for i := range r.IntN(3) {
			f := follow("s", i)
			if chance(30) {
				// With a key all attempts send the same one.
				k := randomOf(seed, nonce, "key", i)
				f.Key = fmt.Sprintf("%s.k%d", nonce, i)
				f.Nonce = fmt.Sprintf("%d/%s.k%d", d-1, nonce[strings.IndexByte(nonce, '/')+1:], i)
				f.To = recipient(k.IntN(1 << 20))
			}
			b.Staged = append(b.Staged, f)
		}
		if chance(15) {
			b.Direct = append(b.Direct, follow("d", 0))
		}
		if chance(20) {
			b.Carried = append(b.Carried, follow("c", 0))
		}
	}
	switch n := r.IntN(100); {
	case n < 66:
		b.End = endComplete
	case n < 75:
		b.End = endFail
	case n < 80:
		b.End = endDelay
	case n < 84:
		b.End = endDead
	case n < 90:
		b.End = endRelease
	case n < 94:
		b.End = endForget
	default:
		b.End = endCrash
	}
	if chance(6) { // too late, where the worker has to renew
		b.Work, b.Renew, b.End = time.Duration(3100+r.IntN(700))*time.Millisecond, false, endComplete
	}
	if mode == modeTask {
		b.Carried = nil
		switch b.End {
		case endDelay:
			b.End = endDefer
		case endDead:
			b.End = endBad
		case endRelease:
			b.End = endComplete
		case endForget:
			b.End = endForever
		}
	}
	return b
}

// calmed is b without what keeps a message from its end.
func (b Behaviour) calmed() Behaviour {
	switch b.End {
	case endForget, endForever, endCrash, endRelease, endDefer:
		b.End = endComplete
	}
	b.Work = min(b.Work, 100*time.Millisecond)
	return b
}
