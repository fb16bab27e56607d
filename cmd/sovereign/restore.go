package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/store/bolt"
)

func newRestore(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the store",
		Long: `Replace the store by a backup, or make one of it in an empty folder. The supervisor
must be stopped, or it is refused, store_locked. The backup is looked through first;
then it takes the store's place in one step.

A new epoch begins: every token and message id from now on is greater than any that
was ever given, so that what a worker of before still holds is stale. What the backup
holds as claimed is PARKED, because nobody knows how that work ended. What had not
been claimed at the time of the backup is delivered, even if it was done since.`,
		Example: "  sovereign restore /backup/jobs.db\n  sovereign restore --data /var/lib/jobs /backup/jobs.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.restore(cmd.Context(), streamsOf(cmd), args[0])
		},
	}
}

// A restoredStore is what restore did, as programs read it.
type restoredStore struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Epoch uint64 `json:"epoch"`
	reconciliation
}

func (s *shared) restore(ctx context.Context, io streams, name string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	at := locate(s.data, os.Getenv)
	if at.inherited.Process != "" {
		return orphaned(nil)
	}
	if _, err := os.Stat(name); err != nil {
		return mayNot("restore "+name, err)
	}
	out := restoredStore{File: name}
	shown := newProgress(io.err, "restore", s.json)
	db, err := alone(ctx, at.data, func() (*bolt.DB, error) {
		return bolt.Restore(ctx, at.data, name, func(done, total int64) {
			out.Bytes = done
			shown.show(done, total)
		}, bolt.Options{})
	})
	shown.end()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out.Epoch = db.Epoch()
	// From here on the store is the new one. What is still to be done is done at
	// its next opening if a crash comes between.
	log := slog.New(newTextLog(io.err, slog.LevelWarn, colourful(io.err)))
	if out.reconciliation, err = reconcile(ctx, db, at.data, log); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, out)
	}
	if _, err := fmt.Fprintf(io.out, "restored %s from %s into %s: epoch %d\n", size(out.Bytes), printable(name), printable(at.data), out.Epoch); err != nil {
		return err
	}
	if out.reconciliation.empty() {
		return nil
	}
	return out.reconciliation.print(io.out)
}
