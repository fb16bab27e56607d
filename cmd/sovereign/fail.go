package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type failOptions struct {
	claimOptions
	reason string
	delay  span
	dead   bool
}

func newFail(s *shared) *cobra.Command {
	o := failOptions{claimOptions: claimOptions{workerOptions: workerOptions{shared: s}}}
	cmd := &cobra.Command{
		Use:   "fail [REASON...]",
		Short: "End a claim without success",
		Long: `Fail an attempt: it is charged, and the message is NEW again after the actor's
backoff, or after --delay; at max_attempts, or with --dead, it is DEAD.`,
		Example: "  sovereign fail \"no such picture\" --dead\n  sovereign fail --delay 10m service is down",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), streamsOf(cmd), args, cmd.Flags().Changed("delay"))
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.reason, "reason", "", "the reason, instead of REASON")
	cmd.Flags().Var(&o.delay, "delay", "try again after so long, instead of the backoff")
	cmd.Flags().BoolVar(&o.dead, "dead", false, "do not try again")
	exclude(cmd, "delay", "dead")
	return cmd
}

func (o *failOptions) run(ctx context.Context, io streams, args []string, delayed bool) error {
	at, ref, err := o.ref()
	if err != nil {
		return err
	}
	if len(args) > 0 && o.reason != "" {
		return usage("two reasons were given", "REASON and --reason exclude each other", "give one of them")
	}
	params := protocol.FailParams{Identity: ref.Identity, ID: ref.ID, Token: ref.Token, Dead: o.dead,
		Reason: strings.TrimSpace(o.reason + strings.Join(args, " "))}
	if delayed {
		params.Delay = new(protocol.Duration(o.delay))
	}
	var failed protocol.FailResult
	if err := askWorker(ctx, at, protocol.MethodFail, params, &failed); err != nil {
		return err
	}
	return o.became(io, ref.ID, failed.State, failed)
}
