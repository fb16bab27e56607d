package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

func newVerify(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the store's integrity",
		Long: `Read every page and every record of the store and compare records, indexes and
counters with each other. Damage is listed, and the exit status is then 1; so it is
for a stopped store that is older than its high-water mark. Of a store that is too
damaged to be opened the pages are checked alone. Nothing is changed.`,
		Example: "  sovereign verify\n  sovereign verify --data /var/lib/jobs/.sovereign --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.verify(cmd.Context(), streamsOf(cmd)) },
	}
}

func (s *shared) verify(ctx context.Context, io streams) error {
	found := protocol.Verified{Problems: []protocol.Problem{}}
	err := s.read(ctx, protocol.MethodVerify, protocol.Empty{}, &found)
	if refusal.Has(err, refusal.StoreCorrupt) || refusal.Has(err, refusal.StoreRolledBack) {
		found, err = verifyPages(ctx, locate(s.data, os.Getenv).data, err)
	}
	if err != nil {
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
		if n := int64(len(found.Problems)) + found.More; n > 0 {
			verdict = plural(n, "problem")
		}
		_, e := fmt.Fprintf(io.out, "%s: %s checked\n", verdict, plural(found.Messages, "message"))
		err = errors.Join(err, e)
	}
	if err == nil && len(found.Problems) > 0 {
		err = statusError{status: exitFailed}
	}
	return err
}

// maxPageProblems bounds what is told of a store that is damaged all over.
const maxPageProblems = 1000

// verifyPages checks the pages of a store that cannot be opened because of why.
func verifyPages(ctx context.Context, data string, why error) (protocol.Verified, error) {
	found := protocol.Verified{Problems: []protocol.Problem{}}
	err := bolt.CheckFile(ctx, data, func(problem error) bool {
		if len(found.Problems) == maxPageProblems {
			found.More++
			return true
		}
		found.Problems = append(found.Problems, protocol.Problem{Where: bolt.DataFile, What: problem.Error()})
		return true
	})
	if err != nil || len(found.Problems) == 0 {
		return found, statusError{exitFailed, errors.Join(why, err)}
	}
	return found, nil
}
