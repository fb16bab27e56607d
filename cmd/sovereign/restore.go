package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store/bolt"
)

func newRestore(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the store",
		Long: `Replace the store by a backup, or make one of it in an empty folder. The supervisor
must be stopped, or it is refused, store_locked. The backup is looked through first;
then it takes the store's place in one step. What it replaces is counted, and kept in
the folder as ` + bolt.KeptFile + ` until the next restore, for which that is
a backup like any other: to restore it is the way back.

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
	// Messages are what the store holds now; Replaced is the store of before, nil where
	// there was none.
	Messages protocol.Counts `json:"messages"`
	Replaced *replacedStore  `json:"replaced"`
	reconciliation
}

func (s *shared) restore(ctx context.Context, std streams, name string) (err error) {
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
	shown := newProgress(std.err, "restore", s.json)
	db, err := alone(ctx, at.data, func() (*bolt.DB, error) {
		return bolt.Restore(ctx, at.data, name, bolt.Restoring{
			Progress: func(done, total int64) {
				out.Bytes = done
				shown.show(done, total)
			},
			Replaced: func(old *bolt.DB, since uint64, other bool, err error) {
				out.Replaced = replacedBy(ctx, old, since, other, err)
				out.Replaced.Kept = filepath.Join(at.data, bolt.KeptFile)
			},
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
	log := slog.New(newTextLog(std.err, slog.LevelWarn, colourful(std.err)))
	box, err := mailbox.Open(ctx, db, leasesOf(db), mailbox.Options{Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if out.reconciliation, err = reconcile(ctx, box, out.Epoch, at.data, log); err != nil {
		return err
	}
	if out.Messages, err = allCounts(ctx, box); err != nil {
		return err
	}
	if s.json {
		return writeJSON(std.out, out)
	}
	return out.print(std.out, at.data)
}

// print says what there is now, what it replaces, what was put in order, and last how to
// go back.
func (r restoredStore) print(w io.Writer, data string) error {
	_, err := fmt.Fprintf(w, "restored %s from %s into %s: epoch %d, %s\n", size(r.Bytes), printable(r.File), printable(data), r.Epoch, counted(r.Messages))
	if err == nil && r.Replaced != nil {
		err = r.Replaced.print(w)
	}
	if err == nil && !r.reconciliation.empty() {
		err = r.reconciliation.print(w)
	}
	if err == nil && r.Replaced != nil {
		_, err = fmt.Fprintf(w, "the replaced %s is kept until the next restore; to go back: sovereign restore --data %s %s\n",
			bolt.DataFile, shellQuote(printable(data)), shellQuote(printable(r.Replaced.Kept)))
	}
	return err
}
