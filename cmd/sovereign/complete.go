package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type completeOptions struct {
	claimOptions
	file string
}

func newComplete(s *shared) *cobra.Command {
	o := completeOptions{claimOptions: claimOptions{workerOptions: workerOptions{shared: s}}}
	cmd := &cobra.Command{
		Use:   "complete [RESULT|-]",
		Short: "End a claim with success",
		Long: `Complete a message: it is DONE, and what was staged with its claim becomes visible,
in one transaction. The result is RESULT, with - the standard input, with --file a
file, else empty. Completing again with the same token changes nothing.`,
		Example: "  sovereign complete done\n  ./work | sovereign complete -",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), streamsOf(cmd), args) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().VarP((*filled)(&o.file), "file", "f", "read the result from this `file`")
	return cmd
}

func (o *completeOptions) run(ctx context.Context, io streams, args []string) error {
	at, ref, err := o.ref()
	if err != nil {
		return err
	}
	if len(args) > 0 && o.file != "" {
		return usage("two results were given", "RESULT and --file exclude each other", "give one of them")
	}
	result, err := content(io.in, args, o.file)
	if err != nil {
		return err
	}
	var done protocol.CompleteResult
	params := protocol.CompleteParams{Identity: ref.Identity, ID: ref.ID, Token: ref.Token, Result: result}
	if err := askWorker(ctx, at, protocol.MethodComplete, params, &done); err != nil {
		return err
	}
	return o.became(io, ref.ID, done.State, done)
}
