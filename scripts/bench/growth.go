package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// growth measures the load of 64 + 64 clients while ever more messages wait: of another
// actor, and of the same one, whose workers then get the oldest.
func (b *bench) growth(ctx context.Context) (err error) {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Printf("%d senders and %d workers, body of 1 KiB, %d messages in each of %d rounds; those that wait have %d bytes; times in ms\n\n",
		side, side, b.crowd, b.rounds, smallBody)
	t := newTable("waiting", "of", "messages/s", "send p50", "send p99", "CPU µs/msg", "anonymous MiB")
	waiting := 0
	for _, n := range b.backlogs {
		if err := preload(ctx, filepath.Join(dir, ".sovereign"), n-waiting, newBody(smallBody)); err != nil {
			return err
		}
		waiting = n
		if err := b.grown(ctx, dir, n, t); err != nil {
			return fmt.Errorf("%d messages: %w", n, err)
		}
	}
	t.end()
	return nil
}

// grown measures the store in dir, where n messages of recipient wait.
func (b *bench) grown(ctx context.Context, dir string, n int, t table) (err error) {
	p, err := b.actorsIn(ctx, dir, side, "", "busy", recipient)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	names := []string{"another actor", "the same actor"}
	found, used := make([]standing, len(names)), make([]series, len(names))
	for range b.rounds {
		for i := range names {
			got, err := crowded(ctx, p.only(i), b.crowd, false)
			if err != nil {
				return err
			}
			found[i].add(got)
			used[i] = append(used[i], footprintOf(p.pid()).anonymous/1024)
		}
	}
	for i, name := range names {
		s := found[i]
		t.row(strconv.Itoa(n), name, s.rate.String(), s.send.String(), s.send99.String(), cpuCell(s.cpu), figure(used[i].median()))
	}
	return nil
}
