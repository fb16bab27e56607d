package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A broker is a system that takes messages and hands them out, in a state in which
// every answer means that what was asked is on disk.
type broker interface {
	// client opens connection number i, from 0; a negative one is a sender's.
	client(i int) (client, error)
	// pids are those of its processes; none in process.
	pids() []int
	stop() error
}

// A client is one connection, used by one goroutine; only close may be called
// beside.
type client interface {
	send(body []byte) error
	// claim waits for a message.
	claim() (job, error)
	complete(j job) error
	// next completes j and claims another in one exchange. It does not wait: ok
	// is false where there is none.
	next(j job) (got job, ok bool, err error)
	close()
}

// A job is a claimed message as its client names it.
type job struct {
	id    string
	token uint64
}

// limit is how long one measurement may take.
const limit = 2 * time.Minute

const bodySize = 1 << 10

// newBody is a text of n bytes that does not compress well.
func newBody(n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+ "
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return b
}

// A trip is what one measurement of round trips found.
type trip struct {
	rate        float64 // messages a second
	whole       times   // each round trip of one client
	send        times   // each send
	cpu         float64 // of the broker's process, µs a message
	claim, done times   // one client only
}

// alone makes n round trips, one after another.
func alone(ctx context.Context, b broker, n int) (out trip, err error) {
	sender, err := b.client(-1)
	if err != nil {
		return out, err
	}
	defer sender.close()
	worker, err := b.client(0)
	if err != nil {
		return out, err
	}
	defer worker.close()
	body := newBody(bodySize)
	before, start := cpuOf(b.pids()), time.Now()
	for range n {
		t0 := time.Now()
		if err := sender.send(body); err != nil {
			return out, err
		}
		t1 := time.Now()
		j, err := worker.claim()
		if err != nil {
			return out, err
		}
		t2 := time.Now()
		if err := worker.complete(j); err != nil {
			return out, err
		}
		t3 := time.Now()
		out.send, out.claim = append(out.send, t1.Sub(t0)), append(out.claim, t2.Sub(t1))
		out.done, out.whole = append(out.done, t3.Sub(t2)), append(out.whole, t3.Sub(t0))
		if ctx.Err() != nil || t3.Sub(start) > limit {
			break
		}
	}
	done := len(out.whole)
	out.rate = float64(done) / time.Since(start).Seconds()
	out.cpu = float64(cpuOf(b.pids())-before) / float64(time.Microsecond) / float64(done)
	return out, ctx.Err()
}

// side is the number of senders, and of workers, of a crowd.
const side = 64

// crowded sends n messages of 1 KiB from 64 clients while 64 others claim and
// complete them.
func crowded(ctx context.Context, b broker, n int, next bool) (trip, error) {
	return crowd{senders: side, workers: side, body: bodySize, next: next}.run(ctx, b, n)
}

// A crowd is senders, and workers that claim and complete what they send.
type crowd struct {
	senders, workers int
	body             int  // bytes of a message
	next             bool // complete and claim in one exchange
}

// run passes n messages through b.
func (w crowd) run(ctx context.Context, b broker, n int) (out trip, err error) {
	var workers, senders []client
	defer func() {
		for _, c := range append(workers, senders...) {
			c.close()
		}
	}()
	for i := range w.workers {
		c, err := b.client(i)
		if err != nil {
			return out, err
		}
		workers = append(workers, c)
	}
	for i := range w.senders {
		c, err := b.client(-1 - i)
		if err != nil {
			return out, err
		}
		senders = append(senders, c)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	r := rush{total: int64(n), all: make(chan struct{}), failed: make(chan error, len(senders)+len(workers))}
	before, start := cpuOf(b.pids()), time.Now()
	var left sync.WaitGroup
	for _, c := range senders {
		left.Go(func() { r.fail(r.feed(c, newBody(w.body))) })
	}
	for _, c := range workers {
		left.Go(func() { r.fail(r.work(c, w.next)) })
	}
	select {
	case <-r.all:
	case err = <-r.failed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	took := time.Since(start)
	out.cpu = float64(cpuOf(b.pids())-before) / float64(time.Microsecond) / float64(n)
	r.over.Store(true)
	for _, c := range append(workers, senders...) {
		c.close() // who waits for a message waits no more
	}
	left.Wait()
	out.rate, out.send = float64(n)/took.Seconds(), r.sends
	return out, err
}

// A rush is one measurement of a crowd under way.
type rush struct {
	total      int64
	sent, done atomic.Int64
	over       atomic.Bool
	all        chan struct{} // closed when every message is complete
	failed     chan error    // has room for all

	mu    sync.Mutex
	sends times // guarded by mu
}

func (r *rush) fail(err error) {
	if err != nil && !r.over.Load() {
		r.failed <- err
	}
}

func (r *rush) feed(c client, body []byte) error {
	var took times
	for r.sent.Add(1) <= r.total {
		t := time.Now()
		if err := c.send(body); err != nil {
			return err
		}
		took = append(took, time.Since(t))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends = append(r.sends, took...)
	return nil
}

var errEnough = errors.New("more messages came out than went in")

func (r *rush) work(c client, next bool) error {
	for {
		j, err := c.claim()
		if err != nil {
			return err
		}
		for ok := true; ok; {
			if next {
				j, ok, err = c.next(j)
			} else {
				err, ok = c.complete(j), false
			}
			if err != nil {
				return err
			}
			switch n := r.done.Add(1); {
			case n == r.total:
				close(r.all)
			case n > r.total:
				return errEnough
			}
		}
	}
}
