package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type renewOptions struct {
	claimOptions
	progress string
}

func newRenew(s *shared) *cobra.Command {
	o := renewOptions{claimOptions: claimOptions{workerOptions: workerOptions{shared: s}}}
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Keep a claim alive, and tell of progress",
		Long: `Move the expiry of a claim, never to earlier than it was, and print how long it
lasts now. Needed where the actor's claim.renew is manual.`,
		Example: `  sovereign renew --progress "3 of 12 pages"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), streamsOf(cmd), cmd.Flags().Changed("progress"))
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.progress, "progress", "", "how far it is, a `text` for people")
	return cmd
}

func (o *renewOptions) run(ctx context.Context, io streams, tellsProgress bool) error {
	at, ref, err := o.ref()
	if err != nil {
		return err
	}
	params := protocol.RenewParams{Identity: ref.Identity, ID: ref.ID, Token: ref.Token}
	if tellsProgress {
		params.Progress = &o.progress
	}
	var renewed protocol.RenewResult
	if err := askWorker(ctx, at, protocol.MethodRenew, params, &renewed); err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, renewed)
	}
	_, err = fmt.Fprintf(io.out, "%dms\n", renewed.RemainingMS)
	return err
}
