package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/store/bolt"
)

func newCompact(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Give the room of removed messages back to the disk",
		Long: `Rewrite the database without the room that removed messages have left in it. It needs
room for the new file beside the old one, which it then replaces in one step. The
supervisor must be stopped, or it is refused, store_locked. Tokens, message ids and
counts go on from where they are.

The room inside the file is used again by new messages, so this is only worth while
after a purge that will not be followed by as many.`,
		Example: "  sovereign compact\n  sovereign compact --data /var/lib/jobs --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.compact(cmd.Context(), streamsOf(cmd)) },
	}
}

// A compaction is what compact did, as programs read it: bytes of the database.
type compaction struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

func (s *shared) compact(ctx context.Context, io streams) error {
	at := locate(s.data, os.Getenv)
	if at.inherited.Process != "" {
		return orphaned(nil)
	}
	if err := mustExist(at.data); err != nil {
		return err
	}
	done, err := alone(ctx, at.data, func() (c compaction, err error) {
		c.Before, c.After, err = bolt.Compact(ctx, at.data, bolt.Options{})
		return c, err
	})
	if err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, done)
	}
	_, err = fmt.Fprintf(io.out, "compacted %s: %s before, %s now\n", bolt.DataFile, size(done.Before), size(done.After))
	return err
}
