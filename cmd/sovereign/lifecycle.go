package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

func newStart(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorStart, "started", &cobra.Command{
		Use:   "start ACTOR...",
		Short: "Start an actor that is stopped or failed",
		Long: `Start an actor that was stopped, or that failed because it ended too often; its
restarts are counted anew. Starting one that runs changes nothing.`,
		Example: "  sovereign start resize",
	})
}

func newStop(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorStop, "stopped", &cobra.Command{
		Use:   "stop ACTOR...",
		Short: "Stop an actor, durably",
		Long: `Stop an actor: its processes are told, given stop.timeout, then killed with
everything that they started. It stays stopped, over restarts of the supervisor
too, until it is started. Its messages wait.`,
		Example: "  sovereign stop resize\n  sovereign stop fetch resize",
	})
}

func newRestart(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorRestart, "restarted", &cobra.Command{
		Use:   "restart ACTOR...",
		Short: "Stop an actor and start it again",
		Long: `Stop an actor's processes as stop does, then start it. No new process runs beside
the old one of its slot.`,
		Example: "  sovereign restart resize",
	})
}

func newPause(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorPause, "paused", &cobra.Command{
		Use:   "pause ACTOR...",
		Short: "Stop deliveries to an actor, durably",
		Long: `Hand no more messages to an actor until it is resumed. Its processes run on, and
what they have claimed they finish. A daemon gets no messages: to pause one is
refused, wrong_state, where a supervisor runs.`,
		Example: "  sovereign pause resize",
	})
}

func newResume(s *shared) *cobra.Command {
	return actorCommand(s, protocol.MethodActorResume, "resumed", &cobra.Command{
		Use:   "resume ACTOR...",
		Short: "Deliver messages to a paused actor again",
		Long: `Hand messages to an actor again, after pause: what has waited meanwhile is
delivered in its order.`,
		Example: "  sovereign resume resize",
	})
}

// actorCommand completes the command of a method that takes an actor, for one or
// several.
func actorCommand(s *shared, method, done string, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MatchAll(cobra.MinimumNArgs(1), namedActors)
	cmd.ValidArgsFunction = completeActors(s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return s.act(cmd.Context(), streamsOf(cmd), method, done, protocol.ActorParams{Actor: args[0]})
		}
		return s.actAll(cmd.Context(), streamsOf(cmd), method, done, args)
	}
	return cmd
}

func (s *shared) act(ctx context.Context, io streams, method, done string, params protocol.ActorParams) error {
	running, err := s.wish(ctx, method, params)
	switch {
	case err != nil:
		return err
	case s.json:
		return writeJSON(io.out, protocol.Empty{})
	case !running:
		fmt.Fprintln(io.err, "no supervisor runs: it is recorded, and takes effect with the next one")
	}
	_, err = fmt.Fprintf(io.out, "%s %s\n", params.Actor, done)
	return err
}

// wish asks one thing of one actor. Where no supervisor runs it was recorded only.
func (s *shared) wish(ctx context.Context, method string, params protocol.ActorParams) (running bool, err error) {
	conn, err := s.connect(ctx, toWrite)
	if err != nil {
		return false, err
	}
	err = errors.Join(conn.call(ctx, method, params, nil), conn.Close())
	return conn.client != nil, s.didYouMean(ctx, err, params.Actor)
}

// acted is what became of one actor's wish, as programs read it.
type acted struct {
	Actor string     `json:"actor"`
	Error *errorJSON `json:"error,omitempty"`
}

// actAll asks for one actor after the other: each is judged alone, and the exit
// status is that of the first that was refused.
func (s *shared) actAll(ctx context.Context, io streams, method, done string, actors []string) error {
	var first error
	results := []acted{}
	for _, name := range actors {
		a := acted{Actor: name}
		var err error
		if s.json {
			_, err = s.wish(ctx, method, protocol.ActorParams{Actor: name})
		} else {
			err = s.act(ctx, io, method, done, protocol.ActorParams{Actor: name})
		}
		if err != nil {
			e := errorOf(err)
			a.Error = &e
			if first == nil {
				first = err
			}
			if !s.json {
				report(err, false, io.out, io.err)
			}
		}
		results = append(results, a)
	}
	if s.json {
		if err := writeJSON(io.out, map[string]any{"results": results}); err != nil {
			return err
		}
	}
	if first != nil {
		return statusError{status: statusOf(first)}
	}
	return nil
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
		ValidArgsFunction: completeSignal(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.ActorParams{Actor: args[0], Signal: args[1]}
			return s.act(cmd.Context(), streamsOf(cmd), protocol.MethodActorSignal, "was sent "+signalName(args[1]), params)
		},
	}
}

func signalName(text string) string {
	if _, err := strconv.Atoi(text); err == nil {
		return "signal " + text
	}
	return printable(strings.ToUpper(text))
}
