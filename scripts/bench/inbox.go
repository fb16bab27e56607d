package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// looks is how often each command of an inbox is run.
const looks = 21

// looking are the commands that people look at a mailbox with, by their heads. The first
// asks nobody: what a start of the program takes by itself.
var looking = []struct {
	head string
	args []string
}{
	{"version: no store", []string{"version"}},
	{"inbox: the first page", []string{"inbox"}},
	{"--last 10", []string{"inbox", "--last", "10"}},
	{"--state DEAD: none", []string{"inbox", "--state", "DEAD"}},
	{"--state CLAIMED: one", []string{"inbox", "--state", "CLAIMED"}},
	{"--subject: none has it", []string{"inbox", "--subject", "nobody wrote that", "--limit", "1"}},
	{"status: all counts", []string{"status"}},
}

// lookStore measures what each command of looking takes in dir, whose supervisor runs and
// has a message claimed, from its exec to its exit.
func (b *bench) lookStore(ctx context.Context, dir string) (took [][]float64, err error) {
	f, err := b.launchWork(dir, workerActor, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if _, err := f.up(ctx); err != nil {
		return nil, err
	}
	for _, l := range looking {
		var all times
		for range looks {
			began := time.Now()
			said, err := exec.CommandContext(ctx, b.sovereign, append(l.args, "--data", filepath.Join(dir, ".sovereign"))...).CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %s", strings.Join(l.args, " "), err, said)
			}
			all = append(all, time.Since(began))
		}
		took = append(took, []float64{millis(slices.Min(all)), all.at(0.5), millis(slices.Max(all))})
	}
	return took, nil
}
