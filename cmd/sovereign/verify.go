package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func newVerify(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the store's integrity",
		Long: `Read every record of the store and compare records, indexes and counters with each
other. Damage is listed, and the exit status is then 1. Nothing is changed.`,
		Example: "  sovereign verify\n  sovereign verify --data /var/lib/jobs/.sovereign --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.verify(cmd.Context(), streamsOf(cmd)) },
	}
}

func (s *shared) verify(ctx context.Context, io streams) error {
	found := protocol.Verified{Problems: []protocol.Problem{}}
	err := s.read(ctx, protocol.MethodVerify, protocol.Empty{}, &found)
	switch {
	case refusal.Has(err, refusal.StoreCorrupt):
		return statusError{exitFailed, err}
	case err != nil:
		return err
	}
	if s.json {
		err = writeJSON(io.out, found)
	} else {
		for _, p := range found.Problems {
			_, e := fmt.Fprintf(io.out, "%s: %s\n", printable(p.Where), printable(p.What))
			err = errors.Join(err, e)
		}
		verdict := "ok"
		if len(found.Problems) > 0 {
			verdict = plural(int64(len(found.Problems)), "problem")
		}
		_, e := fmt.Fprintf(io.out, "%s: %s checked\n", verdict, plural(found.Messages, "message"))
		err = errors.Join(err, e)
	}
	if err == nil && len(found.Problems) > 0 {
		err = statusError{status: exitFailed}
	}
	return err
}
