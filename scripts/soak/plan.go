package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// What a step does.
const (
	stepSend           = "send"
	stepSendKeyed      = "send with a key"
	stepSendWrong      = "send a key with other content"
	stepKillWorker     = "kill a worker"
	stepStopWorker     = "stop a worker"
	stepKillSupervisor = "kill the supervisor"
	stepStopSupervisor = "stop the supervisor"
	stepTermSupervisor = "end the supervisor"
	stepCancel         = "cancel"
	stepRetry          = "retry"
	stepDrop           = "drop"
	stepPause          = "pause an actor"
)

// A Step is one decision of the driver. Pick chooses among what is there when it is
// carried out: the seed decides the number, the moment what it means.
type Step struct {
	N     int
	After time.Duration // since the step before
	Do    string
	Pick  int
	For   time.Duration // how long something is stopped, paused or down
	Send  Sending
}

// A Sending is a message of the driver's.
type Sending struct {
	Follow
	Delay    time.Duration
	Priority int
	Command  bool // by `sovereign send`
}

// weights say how often each kind of step is taken.
var weights = []struct {
	do     string
	weight int
}{
	{stepSend, 520}, {stepSendKeyed, 80}, {stepSendWrong, 20}, {stepKillWorker, 90}, {stepStopWorker, 60},
	{stepKillSupervisor, 28}, {stepStopSupervisor, 22}, {stepTermSupervisor, 14},
	{stepCancel, 60}, {stepRetry, 60}, {stepDrop, 40}, {stepPause, 20},
}

// A Plan makes the steps of a seed, one after the other.
type Plan struct {
	r *rand.Rand
	n int
}

func newPlan(seed uint64) *Plan { return &Plan{r: randomOf(seed, "plan")} }

// Next is the next step. Steps of the same seed are the same.
func (p *Plan) Next() Step {
	p.n++
	s := Step{N: p.n, After: time.Duration(p.r.ExpFloat64() * float64(25*time.Millisecond)), Pick: p.r.IntN(1 << 20)}
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n := p.r.IntN(total)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			s.Do = w.do
			break
		}
	}
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(p.r.Int64N(int64(high-low))) }
	switch s.Do {
	case stepSend, stepSendKeyed, stepSendWrong:
		s.Send = Sending{Follow: Follow{To: recipient(p.r.IntN(1 << 20)), Nonce: fmt.Sprintf("%d/%d", p.r.IntN(3), p.n)}, Command: p.r.IntN(25) == 0}
		if p.r.IntN(5) == 0 {
			s.Send.Delay = between(0, 2*time.Second)
		}
		s.Send.Priority = p.r.IntN(3) - 1
		if s.Do != stepSend {
			// A key is used again and again: the recipient and the content follow from it.
			k := p.r.IntN(p.n/20 + 1)
			s.Send.Delay, s.Send.Priority = 0, 0 // they are content, too
			s.Send.Key = fmt.Sprintf("key-%d", k)
			s.Send.To = recipient(k)
			s.Send.Nonce = fmt.Sprintf("0/key-%d", k)
			if s.Do == stepSendWrong {
				s.Send.Nonce = fmt.Sprintf("0/wrong-%d-%d", k, p.n)
			}
		}
	case stepStopWorker:
		s.For = between(300*time.Millisecond, 6*time.Second)
	case stepStopSupervisor:
		s.For = between(200*time.Millisecond, 4*time.Second)
	case stepKillSupervisor, stepTermSupervisor:
		s.For = between(0, 400*time.Millisecond)
	case stepPause:
		s.For = between(200*time.Millisecond, 2*time.Second)
	}
	return s
}
