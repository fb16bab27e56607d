package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// latency measures how long single calls take beside a load: a send while workers run
// flat out, and a renewal beside senders of many and of large messages.
func (b *bench) latency(ctx context.Context) error {
	if err := b.sendsBeside(ctx); err != nil {
		return err
	}
	fmt.Println()
	return b.renewalsBeside(ctx)
}

// sendsBeside measures one client that sends without a pause.
func (b *bench) sendsBeside(ctx context.Context) (err error) {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := preload(ctx, filepath.Join(dir, ".sovereign"), b.drains, newBody(backlogBody)); err != nil {
		return err
	}
	p, err := b.productIn(ctx, dir, side, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	fmt.Printf("one client sends 1 KiB, one after another, to an actor with %d messages waiting, for %s each; ms\n\n", b.drains, b.calm)
	t := newTable("beside", "sends", "p50", "p99", "worst", "the others' messages/s")
	for _, row := range []struct {
		name             string
		senders, workers int
	}{{"nothing", 0, 0}, {fmt.Sprintf("%d workers", side), 0, side}, {fmt.Sprintf("%d workers and %d senders", side, side), side, side}} {
		took, others, err := b.sendBeside(ctx, p, row.senders, row.workers)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		t.row(row.name, strconv.Itoa(len(took)), figure(took.at(0.5)), figure(took.at(0.99)), figure(took.at(1)), figure(others))
	}
	t.end()
	return nil
}

// sendBeside is how long the sends of one client take beside others who send, and
// others who claim and complete.
func (b *bench) sendBeside(ctx context.Context, p *product, senders, workers int) (took times, others float64, err error) {
	var over atomic.Bool
	var done atomic.Int64
	var left sync.WaitGroup
	failed := make(chan error, senders+workers)
	defer func() {
		over.Store(true)
		left.Wait() // each is within one call, and there is always a message
		close(failed)
		for e := range failed {
			err = errors.Join(err, e)
		}
	}()
	beside := func(i int, call func(c client) error) error {
		c, err := p.client(i)
		if err != nil {
			return err
		}
		left.Go(func() {
			defer c.close()
			for !over.Load() && ctx.Err() == nil {
				if err := call(c); err != nil {
					failed <- err
					return
				}
				if i >= 0 {
					done.Add(1)
				}
			}
		})
		return nil
	}
	body := newBody(bodySize)
	for i := range workers {
		if err := beside(i, func(c client) error {
			j, err := c.claim()
			if err != nil {
				return err
			}
			return c.complete(j)
		}); err != nil {
			return nil, 0, err
		}
	}
	for i := range senders {
		if err := beside(-2-i, func(c client) error { return c.send(body) }); err != nil {
			return nil, 0, err
		}
	}
	c, err := p.client(-1)
	if err != nil {
		return nil, 0, err
	}
	defer c.close()
	began := time.Now()
	for time.Since(began) < b.calm && done.Load() < int64(b.drains-workers)/2 && ctx.Err() == nil {
		at := time.Now()
		if err := c.send(body); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(at))
	}
	return took, float64(done.Load()) / time.Since(began).Seconds(), ctx.Err()
}

const (
	claimTTL   = 30 * time.Second
	renewEvery = 10 * time.Millisecond
	batchLines = 10_000 // as many as one batch takes
)

// renewalsBeside measures the renewals of a claim whose worker makes them itself.
func (b *bench) renewalsBeside(ctx context.Context) (err error) {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	p, err := b.actorsIn(ctx, dir, 1, fmt.Sprintf("    claim: {ttl: %s, renew: manual}\n    timeout: 1h\n", claimTTL), "hold", recipient)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	holder, others := p.only(0), p.only(1)
	sender, err := holder.client(-1)
	if err != nil {
		return err
	}
	defer sender.close()
	if err := sender.send(nil); err != nil {
		return err
	}
	worker, err := holder.client(0)
	if err != nil {
		return err
	}
	defer worker.close()
	held, err := worker.claim()
	if err != nil {
		return err
	}
	fmt.Printf("a worker renews its claim each %s; the claim's ttl is %s, a tenth of it %s; ms\n\n",
		renewEvery, claimTTL, claimTTL/10)
	t := newTable("beside", "took s", "renewals", "p50", "p99", "worst", "worst, % of a tenth of the ttl")
	crowd := func(n, senders, size int) func() error {
		return func() error { return sendMany(ctx, others, n, senders, newBody(size)) }
	}
	for _, row := range []struct {
		name string
		load func() error
	}{
		{"nothing", func() error { return rest(ctx, b.calm) }},
		{fmt.Sprintf("send --batch, %d of %d bytes in batches of %d", b.bulk, backlogBody, batchLines), func() error { return b.sendBatches(ctx, dir) }},
		{fmt.Sprintf("%d clients send as many one by one", side), crowd(b.bulk, side, backlogBody)},
		{fmt.Sprintf("16 clients send %d MB in bodies of 64 KiB: a checkpoint each 2 MiB", b.volume/1e6), crowd(b.volume>>16, 16, 64<<10)},
		{fmt.Sprintf("4 clients send %d MB in bodies of 1 MiB: no log", b.volume/1e6), crowd(b.volume>>20, 4, 1<<20)},
	} {
		began := time.Now()
		took, err := renewals(worker.(*lineClient), held, row.load)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		t.row(row.name, figure(time.Since(began).Seconds()), strconv.Itoa(len(took)), figure(took.at(0.5)), figure(took.at(0.99)), figure(took.at(1)),
			figure(100*took.at(1)/millis(claimTTL/10)))
	}
	t.end()
	return nil
}

// renewals renews j until load returns. What was due while one took long counts as well:
// it would have waited at least until that one was answered.
func renewals(c *lineClient, j job, load func() error) (took times, err error) {
	ended := make(chan error, 1)
	go func() { ended <- load() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := time.Now(); ; {
		timer.Reset(time.Until(due))
		select {
		case err := <-ended:
			return took, err
		case <-timer.C:
		}
		if err := c.renew(j); err != nil {
			return took, errors.Join(err, <-ended)
		}
		for done := time.Now(); due.Before(done); due = due.Add(renewEvery) {
			took = append(took, done.Sub(due))
		}
	}
}

// sendMany has clients send n messages together.
func sendMany(ctx context.Context, p *product, n, clients int, body []byte) error {
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, clients)
	for i := range clients {
		all.Go(func() {
			c, err := p.client(-1 - i)
			if err != nil {
				failed <- err
				return
			}
			defer c.close()
			for next.Add(1) <= int64(n) && ctx.Err() == nil {
				if err := c.send(body); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return errors.Join(<-failed, ctx.Err())
}

// sendBatches sends a bulk as a person does.
func (b *bench) sendBatches(ctx context.Context, dir string) error {
	file := filepath.Join(dir, "lines")
	line := fmt.Sprintf("{\"body\":%q}\n", newBody(backlogBody))
	for left := b.bulk; left > 0; left -= batchLines {
		if err := os.WriteFile(file, []byte(strings.Repeat(line, min(left, batchLines))), 0o600); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, b.sovereign, "send", recipient, "--batch", file, "--data", filepath.Join(dir, ".sovereign"))
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("send --batch: %w: %s", err, said)
		}
	}
	return nil
}
