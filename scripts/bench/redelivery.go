package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Both kinds of children say their pid once they have the message, as early as a
// program can: a task when it runs, a worker when its claim is answered. In worker
// mode a second slot waits for work; in the last row there is only the one that
// died, which has to be started again first: at once, for it ran longer than the
// longest backoff.
const (
	taskActor = `  work:
    mode: task
    command: [%[2]s]
`
	workerActor = `  work:
    mode: worker
    replicas: %[1]d
    backoff: {initial: 1ms, max: 1ms}
    command: [%[2]s, claims]
`
	tolerant = `    intensity: {restarts: 1000000, within: 1s}
    retry: {max_attempts: 1000, initial: 0s}
    inbox: {limit: 10000000}
`
)

// redelivery measures the time from a child's death to its message running again.
func (b *bench) redelivery(ctx context.Context) error {
	fmt.Printf("from SIGKILL to the redelivered message running, retry.initial 0s, %d kills each; ms\n\n", b.kills)
	t := newTable("", "waiting messages", "p50", "p90", "p99", "worst")
	for _, backlog := range []int{0, b.backlog} {
		for _, k := range []struct {
			name, actor string
			slots       int
		}{
			{"task", taskActor, 1}, {"worker, another slot free", workerActor, 2}, {"worker, restarted", workerActor, 1},
		} {
			took, err := b.deaths(ctx, k.actor, k.slots, backlog)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			t.row(k.name, strconv.Itoa(backlog), figure(took.at(0.5)), figure(took.at(0.9)), figure(took.at(0.99)), figure(took.at(1)))
		}
	}
	t.end()
	return nil
}

// launchWork starts a supervisor of one of the actors above.
func (b *bench) launchWork(dir, actor string, slots int) (*fleet, error) {
	child, err := child(dir)
	if err != nil {
		return nil, err
	}
	return b.launch(dir, fmt.Sprintf(actor, slots, child)+tolerant)
}

// deaths kills the child of one message after another, and measures until the
// message runs again. Kept open, the messages behind it wait.
func (b *bench) deaths(ctx context.Context, actor string, slots, backlog int) (took times, err error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	if err := preload(ctx, filepath.Join(dir, ".sovereign"), backlog+1, []byte("a message that waits")); err != nil {
		return nil, err
	}
	return b.deathsIn(ctx, dir, actor, slots, backlog)
}

// deathsIn is deaths on the store in dir, in which a message waits and backlog more.
func (b *bench) deathsIn(ctx context.Context, dir, actor string, slots, backlog int) (took times, err error) {
	f, err := b.launchWork(dir, actor, slots)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	running := map[int]bool{}
	next := func() (int, time.Time, error) {
		l, err := f.up(ctx)
		if err != nil {
			return 0, l.at, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(l.text))
		running[pid] = true
		return pid, l.at, err
	}
	pid, _, err := next()
	if err != nil {
		return nil, err
	}
	if slots > 1 && backlog > 0 {
		// The other slot has work of its own; it is left alone, and what is killed
		// comes back once its own slot runs again.
		if _, _, err := next(); err != nil {
			return nil, err
		}
	}
	for range b.kills {
		// What the last kill set going is over: another slot that is free waits for work.
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return took, err
		}
		killed := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return took, err
		}
		again, at, err := next()
		if err != nil {
			return took, err
		}
		took = append(took, at.Sub(killed))
		pid = again
	}
	return took, nil
}

// preload sends n messages before any supervisor runs.
func preload(ctx context.Context, dir string, n int, body []byte) (err error) {
	p, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	failed := make(chan error, side)
	var all sync.WaitGroup
	for i := range side {
		all.Go(func() {
			c, err := p.client(-1)
			if err != nil {
				failed <- err
				return
			}
			defer c.close()
			for range (n + side - 1 - i) / side {
				if err := c.send(body); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
