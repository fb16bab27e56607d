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
	reckoned          bool          // load is: only a part was sent with syncs
	disk              float64       // bytes a message
	loaded, restarted float64       // bytes of anonymous memory a message
	first             time.Duration // from exec to the answer of the first claim
	drain             float64       // messages a second, 64 workers
	deaths            times         // from a child's death to its message running again; of the product
}

// waitingMillion measures a large backlog, in the product and in its peers.
func (b *bench) waitingMillion(ctx context.Context) error {
	fmt.Printf("%d messages of %d bytes, sent by 64 clients; drained by 64 workers, %d of them or for %s; one run each; ~ is "+
		"reckoned from %s, for the rest is sent without syncs; of PostgreSQL the disk is its table and indexes\n\n",
		b.waiting, backlogBody, b.drains, drainFor, loadFor)
	type row struct {
		name string
		backlogged
	}
	var rows []row
	drains := map[string]float64{}
	for _, one := range []struct {
		name, program string
		measure       func(context.Context) (backlogged, error)
	}{
		{"sockets", b.sovereign, b.ownBacklog},
		{"Redis, always", "redis-server", b.redisBacklog},
		{"beanstalkd -f0", "beanstalkd", b.beanstalkBacklog},
		{"NATS, sync always", b.natsServer, b.natsBacklog},
		{"PostgreSQL", b.pgPrograms + "/postgres", b.postgresBacklog},
	} {
		if _, err := exec.LookPath(one.program); err != nil || !strings.Contains(one.name, b.only) {
			fmt.Printf("%s is left out\n", one.name)
			continue
		}
		got, err := one.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		rows, drains[one.name] = append(rows, row{one.name, got}), got.drain
	}
	t := newTable("", "load s", "disk B/msg", "anonymous B/msg", "after a restart", "first claim after SIGKILL, ms", "drain/s",
		"x Redis", "x beanstalkd", "x NATS", "x PostgreSQL", "death to running again p50 ms", "p99")
	for _, got := range rows {
		load, again, again99 := figure(got.load.Seconds()), "-", "-"
		if got.reckoned {
			load = "~" + load
		}
		if len(got.deaths) > 0 {
			again, again99 = figure(got.deaths.at(0.5)), figure(got.deaths.at(0.99))
		}
		cells := []string{got.name, load, figure(got.disk), figure(got.loaded), figure(got.restarted), figure(millis(got.first)), figure(got.drain)}
		for _, name := range against {
			cells = append(cells, ratio(series{got.drain}, series{drains[name]}))
		}
		t.row(append(cells, again, again99)...)
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
	dir := r.dir
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

func (b *bench) beanstalkBacklog(ctx context.Context) (out backlogged, err error) {
	dir, err := b.folder()
	if err != nil {
		return out, err
	}
	return b.slowBacklog(ctx, dir, func(synced bool) (peer, error) {
		if synced {
			return startBeanstalkd(dir, "-f0")
		}
		return startBeanstalkd(dir, "-F")
	})
}

func (b *bench) natsBacklog(ctx context.Context) (out backlogged, err error) {
	dir, err := b.folder()
	if err != nil {
		return out, err
	}
	return b.slowBacklog(ctx, dir, func(synced bool) (peer, error) {
		if synced {
			return b.startNATS(dir, "always")
		}
		return b.startNATS(dir, "2m")
	})
}

func (b *bench) postgresBacklog(ctx context.Context) (out backlogged, err error) {
	dir, err := b.folder()
	if err != nil {
		return out, err
	}
	as, err := b.createDatabase(dir)
	if err != nil {
		return out, err
	}
	return b.slowBacklog(ctx, dir, func(synced bool) (peer, error) {
		if synced {
			return b.startPostgres(dir, as, "on")
		}
		return b.startPostgres(dir, as, "off")
	})
}

// A peer is another's broker that can be killed.
type peer interface {
	broker
	kill()
	// size is the bytes of its files that hold messages.
	size() (float64, error)
}

// loadFor is how long a peer that is slow to sync is loaded as it is.
const loadFor = 10 * time.Second

// slowBacklog is the backlog of a peer that would take too long to take it: it is sent with
// syncs for a while, which tells how long all would take, and the rest without.
func (b *bench) slowBacklog(ctx context.Context, dir string, start func(synced bool) (peer, error)) (out backlogged, err error) {
	s, err := start(true)
	if err != nil {
		return out, err
	}
	empty := anonymousOf(s.pids())
	sent, took, err := sendAll(s, b.waiting, loadFor)
	if err = errors.Join(err, s.stop()); err != nil {
		return out, err
	}
	out.load, out.reckoned = time.Duration(float64(took)*float64(b.waiting)/float64(sent)), sent < b.waiting
	if s, err = start(false); err != nil {
		return out, err
	}
	if _, _, err = sendAll(s, b.waiting-sent, time.Hour); err == nil {
		err = rest(ctx, time.Second) // and what it has in memory yet it writes
	}
	if err == nil {
		out.loaded = max(0, anonymousOf(s.pids())-empty) * 1024 / float64(b.waiting)
		out.disk, err = s.size()
		out.disk /= float64(b.waiting)
	}
	if err != nil {
		return out, errors.Join(err, s.stop())
	}
	s.kill()
	began := time.Now()
	if s, err = start(true); err != nil {
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
		if !notYet(err) || time.Since(began) > limit {
			return out, err
		}
		if err := rest(ctx, 2*time.Millisecond); err != nil {
			return out, err
		}
	}
	out.first = time.Since(began)
	out.restarted = anonymousOf(s.pids()) * 1024 / float64(b.waiting)
	out.drain, err = drain(ctx, s, b.drains)
	return out, err
}

// notYet reports whether err says that a server listens and still reads its files, as
// Redis and PostgreSQL say it.
func notYet(err error) bool {
	return strings.Contains(err.Error(), "LOADING") || strings.Contains(err.Error(), "(57P03)")
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

// anonymousOf is the anonymous memory of processes, in KiB.
func anonymousOf(pids []int) (sum float64) {
	for _, pid := range pids {
		sum += footprintOf(pid).anonymous
	}
	return sum
}

// fill sends n messages from 64 clients, and notes what they cost.
func (out *backlogged) fill(s broker, dir string, n int) (err error) {
	empty := anonymousOf(s.pids())
	_, out.load, err = sendAll(s, n, time.Hour)
	out.loaded = max(0, anonymousOf(s.pids())-empty) * 1024 / float64(n)
	out.disk = float64(filesIn(dir)) / float64(n)
	return err
}

// sendAll sends n messages from 64 clients, or as many as they can within a time.
func sendAll(s broker, n int, within time.Duration) (sent int, took time.Duration, err error) {
	body := newBody(backlogBody)
	var next, done atomic.Int64
	began := time.Now()
	err = together(func(int) error {
		c, err := s.client(-1)
		if err != nil {
			return err
		}
		defer c.close()
		for time.Since(began) < within && next.Add(1) <= int64(n) {
			if err := c.send(body); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return int(done.Load()), time.Since(began), err
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
