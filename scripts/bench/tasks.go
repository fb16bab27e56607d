package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// taskRate measures children for one message each, beside a loop that only starts
// the same program and waits.
func (b *bench) taskRate(ctx context.Context) error {
	var bare, ours, share series
	for range b.rounds {
		loop, err := b.bareLoop()
		if err != nil {
			return err
		}
		none, err := b.drained(ctx, 0)
		if err != nil {
			return err
		}
		all, err := b.drained(ctx, b.tasks)
		if err != nil {
			return err
		}
		bare = append(bare, float64(b.tasks)/loop.Seconds())
		ours = append(ours, float64(b.tasks)/(all-none).Seconds())
		share = append(share, 100*loop.Seconds()/(all-none).Seconds())
	}
	fmt.Printf("%d messages in each of %d rounds, 2 slots; the start and the end of the supervisor are not counted\n\n", b.tasks, b.rounds)
	t := newTable("", "/bin/true a second")
	t.row("bare start and wait", bare.String())
	t.row("task mode", ours.String())
	t.row("% of the bare loop", share.String())
	t.end()
	return nil
}

// bareLoop starts the program from two goroutines, one after another.
func (b *bench) bareLoop() (time.Duration, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	var failed [2]error
	start := time.Now()
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() {
			for range b.tasks / 2 {
				p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Files: []*os.File{null, null, null}})
				if err == nil {
					_, err = p.Wait()
				}
				if err != nil {
					failed[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start), errors.Join(failed[0], failed[1])
}

// drained is how long `run --drain` takes with n messages waiting.
func (b *bench) drained(ctx context.Context, n int) (time.Duration, error) {
	dir, err := b.folder()
	if err != nil {
		return 0, err
	}
	if err := preload(ctx, filepath.Join(dir, ".sovereign"), n, []byte("a message that waits")); err != nil {
		return 0, err
	}
	f, err := b.launch(dir, "  work:\n    mode: task\n    replicas: 2\n    command: [/bin/true]\n", "--drain")
	if err != nil {
		return 0, err
	}
	defer f.fifo.Close()
	err = f.wait()
	return time.Since(f.started), err
}
