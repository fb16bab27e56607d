package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

func newShutdown(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "shutdown",
		Short: "Stop the supervisor and everything that it runs",
		Long: `Stop the supervisor as a SIGTERM would: workers are told, given their stop
timeout, then killed with everything that they started. The command returns once
the supervisor has let go of its sockets.`,
		Example: "  sovereign shutdown",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.shutdown(cmd.Context(), streamsOf(cmd)) },
	}
}

func (s *shared) shutdown(ctx context.Context, io streams) error {
	at := locate(s.data, os.Getenv)
	conn, err := server.Dial(at.data)
	if refusal.Has(err, refusal.Unavailable) {
		return refusal.New(refusal.Unavailable, "shut the supervisor down", "none runs on "+at.data,
			"nothing is to be done; name another store with --data").Because(err)
	}
	if err != nil {
		return err
	}
	c := newClient(conn)
	defer c.Close()
	if err := (patience{notices: io.err}).awake(ctx, c, at.data); err != nil {
		return err
	}
	if err := c.call(ctx, protocol.MethodShutdown, protocol.Empty{}, nil); err != nil {
		return err
	}
	if err := c.hungUp(ctx); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, protocol.Empty{})
	}
	_, err = fmt.Fprintln(io.out, "the supervisor has stopped")
	return err
}
