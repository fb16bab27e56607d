package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

func newRelease(s *shared) *cobra.Command {
	o := claimOptions{workerOptions: workerOptions{shared: s}}
	cmd := &cobra.Command{
		Use:     "release",
		Short:   "Give a claim back, not charged",
		Long:    "Give a message back: it is NEW at once, and the attempt is not charged.",
		Example: "  sovereign release --id m42 --token 1093",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.release(cmd.Context(), streamsOf(cmd)) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *claimOptions) release(ctx context.Context, io streams) error {
	at, ref, err := o.ref()
	if err != nil {
		return err
	}
	var released protocol.ReleaseResult
	if err := askWorker(ctx, at, protocol.MethodRelease, ref, &released); err != nil {
		return err
	}
	return o.became(io, ref.ID, released.State, released)
}
