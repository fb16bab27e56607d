package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

func newStart(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorStart, "started", &cobra.Command{
		Use:   "start ACTOR",
		Short: "Start an actor that is stopped or failed",
		Long: `Start an actor that was stopped, or that failed because it ended too often; its
restarts are counted anew. Starting one that runs changes nothing.`,
		Example: "  sovereign start resize",
	})
}

func newStop(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorStop, "stopped", &cobra.Command{
		Use:   "stop ACTOR",
		Short: "Stop an actor, durably",
		Long: `Stop an actor: its processes are told, given stop.timeout, then killed with
everything that they started. It stays stopped, over restarts of the supervisor
too, until it is started. Its messages wait.`,
		Example: "  sovereign stop resize",
	})
}

func newRestart(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorRestart, "restarted", &cobra.Command{
		Use:   "restart ACTOR",
		Short: "Stop an actor and start it again",
		Long: `Stop an actor's processes as stop does, then start it. No new process runs beside
the old one of its slot.`,
		Example: "  sovereign restart resize",
	})
}

func newPause(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorPause, "paused", &cobra.Command{
		Use:   "pause ACTOR",
		Short: "Stop deliveries to an actor, durably",
		Long: `Hand no more messages to an actor until it is resumed. Its processes run on, and
what they have claimed they finish.`,
		Example: "  sovereign pause resize",
	})
}

func newResume(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorResume, "resumed", &cobra.Command{
		Use:   "resume ACTOR",
		Short: "Deliver messages to a paused actor again",
		Long: `Hand messages to an actor again, after pause: what has waited meanwhile is
delivered in its order.`,
		Example: "  sovereign resume resize",
	})
}

// actorCommand completes the command of a method that takes one actor.
func actorCommand(s *shared, method, done string, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = completeActor(s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.act(cmd.Context(), streamsOf(cmd), method, done, protocol.ActorParams{Actor: args[0]})
	}
	return cmd
}

func (s *shared) act(ctx context.Context, io streams, method, done string, params protocol.ActorParams) error {
	if err := s.write(ctx, method, params, nil); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, protocol.Empty{})
	}
	_, err := fmt.Fprintf(io.out, "%s %s\n", params.Actor, done)
	return err
}

func newSignal(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "signal ACTOR SIGNAL",
		Short: "Send a signal to an actor's processes",
		Long: `Send a signal, by its name with or without SIG or by its number, to the process
group of each of the actor's processes. How they end is theirs to decide: to stop
an actor, use stop.`,
		Example:           "  sovereign signal resize HUP\n  sovereign signal resize KILL",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeActor(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.ActorParams{Actor: args[0], Signal: args[1]}
			return s.act(cmd.Context(), streamsOf(cmd), protocol.MethodActorSignal, "was sent "+signalName(args[1]), params)
		},
	}
}

func signalName(text string) string {
	return printable(strings.ToUpper(text))
}
