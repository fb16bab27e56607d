package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

func newInboxRetry(s *shared) *cobra.Command {
	return changeCommand(s, protocol.MethodInboxRetry, &cobra.Command{
		Use:   "retry ID...",
		Short: "Give DEAD or PARKED messages another chance",
		Long: `Make DEAD or PARKED messages NEW again. What was charged against max_attempts is
forgotten, the history is kept. Their order in the inbox is that of their send.`,
		Example: "  sovereign inbox retry m42 m43",
	})
}

func newInboxCancel(s *shared) *cobra.Command {
	return changeCommand(s, protocol.MethodInboxCancel, &cobra.Command{
		Use:   "cancel ID...",
		Short: "Cancel messages that wait or run",
		Long: `Make a waiting message DEAD at once. For one that runs, its worker is told, then
killed after stop.timeout (a task's whole tree is killed), and then the message
is DEAD with a receipt "cancelled". A completion that commits first wins.`,
		Example: "  sovereign inbox cancel m42",
	})
}

func newInboxDrop(s *shared) *cobra.Command {
	return changeCommand(s, protocol.MethodInboxDrop, &cobra.Command{
		Use:   "drop ID...",
		Short: "Remove messages",
		Long: `Remove messages for good, with their receipts. One that is CLAIMED is refused:
cancel it first.`,
		Example: "  sovereign inbox drop m42",
	})
}

// changeCommand completes the command of a method that takes message ids.
func changeCommand(s *shared, method string, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = completeMessage(s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.change(cmd.Context(), streamsOf(cmd), method, args)
	}
	return cmd
}

// changed is one message's outcome as programs read it.
type changed struct {
	ID    string                `json:"id"`
	State protocol.MessageState `json:"state,omitempty"` // "" where it is gone
	Error *errorJSON            `json:"error,omitempty"`
}

// change asks for the messages in one request: each is judged alone, and the exit
// status is that of the first that was refused.
func (s *shared) change(ctx context.Context, io streams, method string, ids []string) error {
	var answer protocol.InboxChanged
	if err := s.write(ctx, method, protocol.InboxIDsParams{IDs: ids}, &answer); err != nil {
		return err
	}
	if len(answer.Results) == 1 && answer.Results[0].Error != nil {
		return answer.Results[0].Error
	}
	var first error
	results := []changed{}
	for _, r := range answer.Results {
		c := changed{ID: r.ID, State: r.State}
		if r.Error != nil {
			e := errorOf(r.Error)
			c.Error = &e
			if first == nil {
				first = r.Error
			}
		}
		results = append(results, c)
	}
	if s.json {
		if err := writeJSON(io.out, map[string]any{"results": results}); err != nil {
			return err
		}
	} else {
		for _, r := range answer.Results {
			if r.Error != nil {
				report(r.Error, false, io.out, io.err)
				continue
			}
			fmt.Fprintf(io.out, "%s %s\n", r.ID, becameWords(method, r.State))
		}
	}
	if first != nil {
		return statusError{status: statusOf(first)}
	}
	return nil
}

func becameWords(method string, state protocol.MessageState) string {
	switch {
	case state == "":
		return "dropped"
	case method == protocol.MethodInboxCancel && state == protocol.MessageClaimed:
		return "is being cancelled; its worker still runs"
	default:
		return "is " + string(state)
	}
}

type purgeOptions struct {
	*shared
	state string
	older span
}

func newInboxPurge(s *shared) *cobra.Command {
	o := purgeOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "purge --state STATE [--older D]",
		Short: "Remove all messages in one state",
		Long: `Remove every message in one state, with its receipts. With --older only those that
ended at least so long ago (of NEW ones: that were sent so long ago). CLAIMED ones
cannot be purged.`,
		Example: "  sovereign inbox purge --state DONE --older 24h",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().StringVar(&o.state, "state", "", "the `state`: NEW, DONE, DEAD or PARKED (required)")
	cmd.Flags().Var(&o.older, "older", "only those that ended, or of NEW ones were sent, at least so long ago")
	return cmd
}

func (o purgeOptions) run(ctx context.Context, io streams) error {
	if o.state == "" {
		return usage("purge needs a state", "it removes every message in it", "sovereign inbox purge --state DONE")
	}
	var purged protocol.InboxPurged
	params := protocol.InboxPurgeParams{State: o.state, Older: protocol.Duration(time.Duration(o.older))}
	if err := o.write(ctx, protocol.MethodInboxPurge, params, &purged); err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, purged)
	}
	_, err := fmt.Fprintf(io.out, "removed %s\n", plural(int64(purged.Removed), "message"))
	return err
}

// ignoreMissing is err, unless it says that the message is gone.
func ignoreMissing(err error) error {
	if refusal.Has(err, refusal.MessageMissing) {
		return nil
	}
	return err
}
