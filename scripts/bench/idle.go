package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// idleActors measures supervisors whose children wait: every second one a daemon,
// the others workers in a claim.
func (b *bench) idleActors(ctx context.Context) error {
	fmt.Printf("daemons, and workers that wait in a claim, one of each in turn; watched for %s\n\n", b.idle)
	t := newTable("actors", "all up ms", "CPU ms", "RSS KiB", "PSS KiB", "anonymous", "KiB for each further", "threads", "descriptors",
		"CPU ms/min", "% of a core", "restart ms p50", "p99", "all stopped ms")
	var first, second *footprint
	var firstAt int
	for _, n := range b.actors {
		w, err := b.watch(ctx, n)
		if err != nil {
			return fmt.Errorf("%d actors: %w", n, err)
		}
		further := "-"
		if second = &w.footprint; first != nil {
			further = figure((second.pss - first.pss) / float64(n-firstAt))
		} else {
			first, firstAt = second, n
		}
		t.row(strconv.Itoa(n), figure(millis(w.up)), figure(millis(w.starts)), figure(w.rss), figure(w.pss), figure(w.anonymous), further, figure(w.threads),
			figure(w.files), fmt.Sprintf("%.3f", w.cpu), fmt.Sprintf("%.4f", w.cpu/float64(time.Minute/time.Millisecond)*100),
			figure(w.restarts.at(0.5)), figure(w.restarts.at(0.99)), figure(millis(w.stopped)))
	}
	t.end()
	return nil
}

// A watching is what was seen of one idle supervisor.
type watching struct {
	footprint
	up, stopped time.Duration
	starts      time.Duration // CPU of the supervisor until all were up
	cpu         float64       // ms a minute
	restarts    times
}

func (b *bench) watch(ctx context.Context, n int) (w watching, err error) {
	dir, err := b.folder()
	if err != nil {
		return w, err
	}
	child, err := child(dir)
	if err != nil {
		return w, err
	}
	var actors strings.Builder
	for i := range n {
		mode, argument := "daemon", ""
		if i%2 == 1 {
			mode, argument = "worker", ", worker"
		}
		fmt.Fprintf(&actors, "  a%d:\n    mode: %s\n    command: [%s%s]\n    backoff: {initial: 1ms, max: 1ms}\n"+
			"    intensity: {restarts: 1000000, within: 1s}\n", i, mode, child, argument)
	}
	f, err := b.launch(dir, actors.String())
	if err != nil {
		return w, err
	}
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, f.stop())
		}
	}()
	var daemons []int
	for range n {
		l, err := f.up(ctx)
		if err != nil {
			return w, err
		}
		w.up = l.at.Sub(f.started)
		if strings.HasSuffix(l.text, " worker") {
			continue
		}
		pid, err := strconv.Atoi(l.text)
		if err != nil {
			return w, err
		}
		daemons = append(daemons, pid)
	}
	w.starts = cpuTime(f.pid())
	// The start's own work is over when nothing has run for a while.
	if err := rest(ctx, 5*time.Second); err != nil {
		return w, err
	}
	before := cpuTime(f.pid())
	if err := rest(ctx, b.idle); err != nil {
		return w, err
	}
	w.cpu = millis(cpuTime(f.pid())-before) / b.idle.Minutes()
	w.footprint = footprintOf(f.pid())
	for i := range b.restarts {
		at := time.Now()
		if err := syscall.Kill(daemons[i%len(daemons)], syscall.SIGKILL); err != nil {
			return w, err
		}
		l, err := f.up(ctx)
		if err != nil {
			return w, err
		}
		w.restarts = append(w.restarts, l.at.Sub(at))
		if daemons[i%len(daemons)], err = strconv.Atoi(l.text); err != nil {
			return w, err
		}
	}
	at := time.Now()
	stopped = true
	err = f.stop()
	w.stopped = time.Since(at)
	return w, err
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
