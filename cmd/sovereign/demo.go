package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/refusal"
)

type demoOptions struct {
	*shared
	keep bool
}

func newDemo(s *shared) *cobra.Command {
	o := demoOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the guarantees at work, in a temporary folder",
		Long: `Run a small fleet in a temporary folder and break it: kill a worker in the middle
of a message, freeze another one until its claim has expired and let it complete
too late, kill the supervisor itself and start it again. Real processes, real
signals, the real store.

What happens is shown from the journal as it happens. Then the store is read:
every message must have exactly one canonical outcome, every attempt one receipt,
and a follow-up must be visible exactly where the attempt that sent it completed.
The exit status is 1 if that is not so. Nothing is left behind, unless --keep
keeps the folder.`,
		Example: "  sovereign demo\n  sovereign demo --json | jq '.checks[]'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep the folder, to look around in it")
	cmd.AddCommand(newDemoWorker())
	return cmd
}

// demoLimit is the longest that a demonstration may take before it counts as
// failed. It takes some seconds.
const demoLimit = 2 * time.Minute

func (o demoOptions) run(ctx context.Context, io streams) (err error) {
	if o.data != "" {
		return usage("the demonstration has a store of its own", "--data was given", "leave it out; --keep keeps the folder")
	}
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer restore()
	limited, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("the demonstration took longer than "+demoLimit.String()))
	defer cancel()
	folder, err := demoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.leave(io, folder)) }()

	show := &demoStory{json: o.json, out: io.out, colour: colourful(io.out) && !o.json, began: time.Now(), names: map[string]string{}}
	verdict, err := o.perform(limited, folder, show, isTerminal(io.out))
	switch {
	case err != nil && ctx.Err() != nil:
		return statusError{exitFailed, refusal.New(refusal.Failed, "the demonstration was interrupted", "", "run it again: sovereign demo")}
	case err != nil:
		return statusError{exitFailed, refusal.New(refusal.Failed, "the demonstration did not come to its end", err.Error(),
			"run it with --keep and look into supervisor.log").Because(err)}
	}
	verdict.Seconds = time.Since(show.began).Round(time.Millisecond).Seconds()
	if o.json {
		err = writeJSON(io.out, verdict)
	} else {
		err = show.verdict(verdict)
	}
	if err == nil && !verdict.OK {
		err = statusError{status: exitFailed}
	}
	return err
}

// perform plays in folder and judges what is in the store afterwards. When it
// returns no process is left.
func (o demoOptions) perform(ctx context.Context, folder string, show *demoStory, paced bool) (demoVerdict, error) {
	stage, err := setDemoStage(folder, show, paced)
	if err != nil {
		return demoVerdict{}, err
	}
	err = stage.play(ctx)
	if err = errors.Join(err, stage.clear()); err != nil {
		return demoVerdict{}, err
	}
	evidence, err := stage.evidence(ctx)
	if err != nil {
		return demoVerdict{}, err
	}
	return judgeDemo(evidence), nil
}

// demoFolder makes the temporary folder, at a path that the address of a socket
// in it can hold.
func demoFolder() (string, error) {
	base := os.TempDir()
	if len(base) > 60 {
		base = "/tmp"
	}
	folder, err := os.MkdirTemp(base, "sovereign-demo-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the demonstration: %w", err)
	}
	return filepath.EvalSymlinks(folder)
}

// leave removes the folder, or says where it is.
func (o demoOptions) leave(io streams, folder string) error {
	if !o.keep {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove the demonstration's folder: %w", err)
		}
		return nil
	}
	data := shellQuote(filepath.Join(folder, demoData))
	_, err := fmt.Fprintf(io.err, "\nkept %s; look around:\n  sovereign inbox --data %s\n  sovereign events --data %s\n", folder, data, data)
	return err
}
