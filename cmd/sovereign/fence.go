package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func newFence(s *shared) *cobra.Command {
	o := claimOptions{workerOptions: workerOptions{shared: s}}
	cmd := &cobra.Command{
		Use:   "fence",
		Short: "Ask whether a claim is still current, before an irreversible step",
		Long: `Exit with 0 while the claim is current, else with 3. Use it right before a step
that cannot be undone. It narrows the gap, it does not close it: a resource that
checks the token itself does.`,
		Example: "  sovereign fence && rm -r \"$target\"",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.fence(cmd.Context(), streamsOf(cmd)) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *claimOptions) fence(ctx context.Context, io streams) error {
	at, ref, err := o.ref()
	if err != nil {
		return err
	}
	err = askWorker(ctx, at, protocol.MethodCheck, ref, nil)
	switch {
	case refusal.Has(err, refusal.MessageMissing):
		return statusError{exitRefused, err} // a claim on what is gone is not current
	case err != nil:
		return err
	case o.json:
		return writeJSON(io.out, protocol.Empty{})
	}
	return nil
}
