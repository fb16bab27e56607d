package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// backlogBody is the size of the messages of a backlog.
const backlogBody = 256

// A backlogged system has many messages waiting: what that costs, and what it is like
// to come back from a SIGKILL with them.
type backlogged struct {
	load              time.Duration // 64 senders, until all are waiting
	disk              float64       // bytes a message
	loaded, restarted float64       // bytes of anonymous memory a message
	first             time.Duration // from exec to the answer of the first claim
	drain             float64       // messages a second, 64 workers
	deaths            times         // from a child's death to its message running again; of the product
}

// waitingMillion measures a large backlog, in the product and in its peers.
func (b *bench) waitingMillion(ctx context.Context) error {
	fmt.Printf("%d messages of %d bytes, sent by 64 clients; drained by 64 workers, %d of them or for %s; one run each\n\n",
		b.waiting, backlogBody, b.drains, drainFor)
	t := newTable("", "load s", "disk B/msg", "anonymous B/msg", "after a restart", "first claim after SIGKILL, ms", "drain/s",
		"death to running again p50 ms", "p99")
	for _, one := range []struct {
		name, program string
		measure       func(context.Context) (backlogged, error)
	}{
		{"sockets", b.sovereign, b.ownBacklog},
		{"Redis, always", "redis-server", b.redisBacklog},
		{"beanstalkd -f0", "beanstalkd", b.beanstalkBacklog},
	} {
		if _, err := exec.LookPath(one.program); err != nil || !strings.Contains(one.name, b.only) {
			fmt.Printf("%s is left out\n", one.name)
			continue
		}
		got, err := one.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		load, again, again99 := figure(got.load.Seconds()), "-", "-"
		if got.load == 0 {
			load = "-"
		}
		if len(got.deaths) > 0 {
			again, again99 = figure(got.deaths.at(0.5)), figure(got.deaths.at(0.99))
		}
		t.row(one.name, load, figure(got.disk), figure(got.loaded), figure(got.restarted), figure(millis(got.first)), figure(got.drain), again, again99)
	}
	t.end()
	return nil
}

func (b *bench) ownBacklog(ctx context.Context) (out backlogged, err error) {
	dir, err := b.folder()
	if err != nil {
		return out, err
	}
	// 1. Sent through control.sock to a supervisor whose worker holds one message.
	f, err := b.launchWork(dir, workerActor, 1)
	if err != nil {
		return out, err
	}
	if err = f.listens(ctx); err == nil {
		err = out.fill(&product{fleet: f, to: []string{recipient}}, dir, b.waiting+2)
	}
	if err != nil {
		return out, errors.Join(err, f.stop())
	}
	if _, err := f.up(ctx); err != nil {
		return out, errors.Join(err, f.stop())
	}
	// 2. Killed, and started again: its worker says when its claim is answered.
	f.kill()
	if f, err = b.launchWork(dir, workerActor, 1); err != nil {
		return out, err
	}
	l, err := f.up(ctx)
	out.first = l.at.Sub(f.started)
	out.restarted = footprintOf(f.pid()).anonymous * 1024 / float64(b.waiting)
	if err := errors.Join(err, f.stop()); err != nil {
		return out, err
	}
	// 3. Its workers die.
	if out.deaths, err = b.deathsIn(ctx, dir, workerActor, 1, b.waiting); err != nil {
		return out, err
	}
	// 4. And 64 of them work.
	p, err := b.productIn(ctx, dir, side, false)
	if err != nil {
		return out, err
	}
	out.drain, err = drain(ctx, p, b.drains)
	return out, errors.Join(err, p.stop())
}

func (b *bench) redisBacklog(ctx context.Context) (out backlogged, err error) {
	first, err := b.redis()
	if err != nil {
		return out, err
	}
	r := first.(*redis)
	dir := filepath.Dir(r.socket)
	if err := out.fill(r, dir, b.waiting); err != nil {
		return out, errors.Join(err, r.stop())
	}
	r.kill()
	began := time.Now()
	if r, err = startRedis(dir); err != nil {
		return out, err
	}
	return b.comeBack(ctx, r, began, out)
}

// beanstalkd syncs for each message alone: a backlog is sent without that.
func (b *bench) beanstalkBacklog(ctx context.Context) (out backlogged, err error) {
	dir, err := b.folder()
	if err != nil {
		return out, err
	}
	s, err := startBeanstalkd(dir, "-F")
	if err != nil {
		return out, err
	}
	if err := out.fill(s, dir, b.waiting); err != nil {
		return out, errors.Join(err, s.stop())
	}
	out.load = 0
	s.kill()
	began := time.Now()
	if s, err = startBeanstalkd(dir, "-f0"); err != nil {
		return out, err
	}
	return b.comeBack(ctx, s, began, out)
}

// comeBack is what a peer does that began with its backlog.
func (b *bench) comeBack(ctx context.Context, s broker, began time.Time, out backlogged) (_ backlogged, err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	for {
		err := claimOne(s)
		if err == nil {
			break
		}
		// Redis listens while it still reads its file.
		if !strings.Contains(err.Error(), "LOADING") || time.Since(began) > limit {
			return out, err
		}
		if err := rest(ctx, 2*time.Millisecond); err != nil {
			return out, err
		}
	}
	out.first = time.Since(began)
	out.restarted = footprintOf(s.pid()).anonymous * 1024 / float64(b.waiting)
	out.drain, err = drain(ctx, s, b.drains)
	return out, err
}

func claimOne(s broker) error {
	c, err := s.client(0)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.claim()
	return err
}

// fill sends n messages from 64 clients, and notes what they cost.
func (out *backlogged) fill(s broker, dir string, n int) error {
	body := newBody(backlogBody)
	empty := footprintOf(s.pid()).anonymous
	var next atomic.Int64
	began := time.Now()
	err := together(func(int) error {
		c, err := s.client(-1)
		if err != nil {
			return err
		}
		defer c.close()
		for next.Add(1) <= int64(n) {
			if err := c.send(body); err != nil {
				return err
			}
		}
		return nil
	})
	out.load = time.Since(began)
	out.loaded = max(0, footprintOf(s.pid()).anonymous-empty) * 1024 / float64(n)
	out.disk = float64(filesIn(dir)) / float64(n)
	return err
}

// drainFor bounds a drain.
const drainFor = 10 * time.Second

// drain has 64 workers claim and complete n messages, or as many as they can.
func drain(ctx context.Context, s broker, n int) (rate float64, err error) {
	var taken, done atomic.Int64
	began := time.Now()
	err = together(func(i int) error {
		c, err := s.client(i)
		if err != nil {
			return err
		}
		defer c.close()
		for taken.Add(1) <= int64(n) && time.Since(began) < drainFor && ctx.Err() == nil {
			j, err := c.claim()
			if err != nil {
				return err
			}
			if err := c.complete(j); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / time.Since(began).Seconds(), errors.Join(err, ctx.Err())
}

// together runs fn 64 times side by side and returns the first error.
func together(fn func(i int) error) error {
	failed := make(chan error, side)
	var all sync.WaitGroup
	for i := range side {
		all.Go(func() { failed <- fn(i) })
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// filesIn is the size of all files below dir but reserves, which cost the same
// whatever waits.
func filesIn(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(name, ".reserve") || strings.HasSuffix(name, "log") {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
