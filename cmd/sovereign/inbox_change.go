package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A change is what one command does to messages.
type change struct {
	method string
	done   string                  // what they are then, in words
	states []protocol.MessageState // in which its filters find them
	// whatever state a message is in by its turn, it is meant.
	whatever bool
	instead  string // what to do about messages in the other states; "" is nothing
}

func (c change) stateNames() string {
	names := make([]string, len(c.states))
	for i, s := range c.states {
		names[i] = string(s)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// notIn says that messages in a state are not for this change.
func (c change) notIn(state protocol.MessageState) string {
	return fmt.Sprintf("%s messages cannot be %s", state, c.done)
}

// over reports whether err says that a message that is meant in whatever state it is has
// ended, or is gone, before its turn.
func (c change) over(err error) bool {
	return c.whatever && (refusal.Has(err, refusal.WrongState) || refusal.Has(err, refusal.MessageMissing))
}

func newInboxRetry(s *shared) *cobra.Command {
	return changeCommand(s, change{method: protocol.MethodInboxRetry, done: "retried",
		states: []protocol.MessageState{protocol.MessageDead, protocol.MessageParked}}, &cobra.Command{
		Use:   "retry ID... | retry FILTER... --yes",
		Short: "Give DEAD or PARKED messages another chance",
		Long: `Make DEAD or PARKED messages NEW again. What was charged against max_attempts is
forgotten, the history is kept. Their order in the inbox is that of their send.

` + chosenLong + ` Without --state both DEAD and PARKED ones are
chosen.`,
		Example: `  sovereign inbox retry m42 m43
  sovereign inbox retry --to resize --state DEAD --dry-run
  sovereign inbox retry --to resize --state DEAD --yes`,
	})
}

func newInboxCancel(s *shared) *cobra.Command {
	return changeCommand(s, change{method: protocol.MethodInboxCancel, done: "cancelled", whatever: true,
		states:  []protocol.MessageState{protocol.MessageNew, protocol.MessageParked, protocol.MessageClaimed},
		instead: "to remove them: sovereign inbox drop"}, &cobra.Command{
		Use:   "cancel ID... | cancel FILTER... --yes",
		Short: "Cancel messages that wait or run",
		Long: `Make a waiting message DEAD at once. For one that runs, its worker is told, then
killed after stop.timeout (a task's whole tree is killed), and then the message
is DEAD with a receipt "cancelled". A completion that commits first wins.

` + chosenLong + ` Without --state all that are NEW, PARKED or
CLAIMED are chosen.`,
		Example: `  sovereign inbox cancel m42
  sovereign inbox cancel --from nightly --state NEW --yes`,
	})
}

func newInboxDrop(s *shared) *cobra.Command {
	return changeCommand(s, change{method: protocol.MethodInboxDrop, done: "dropped",
		states:  []protocol.MessageState{protocol.MessageNew, protocol.MessageDone, protocol.MessageDead, protocol.MessageParked},
		instead: "cancel them first"}, &cobra.Command{
		Use:   "drop ID... | drop FILTER... --yes",
		Short: "Remove messages",
		Long: `Remove messages for good, with their receipts. One that is CLAIMED is refused:
cancel it first.

` + chosenLong + ` Without --state all but the CLAIMED ones are
chosen.`,
		Example: `  sovereign inbox drop m42
  sovereign inbox drop --state DEAD --subject thumbnail --older 7d --yes`,
	})
}

// chosenLong is how the commands that change messages are given them.
const chosenLong = `Instead of ids, filters choose the messages, as in the list: --to, --state, --from,
--subject, --older, and --limit for the first of those. --dry-run says how many they
choose; only with --yes is it done. Each message is changed by itself: where it is
stopped half way, the same command does the rest. One that has changed since it was
chosen is left as it is.`

// changeCommand completes the command of a method that takes message ids.
func changeCommand(s *shared, c change, cmd *cobra.Command) *cobra.Command {
	o := &changeOptions{inboxOptions: inboxOptions{shared: s}, change: c}
	cmd.ValidArgsFunction = completeMessage(s)
	o.addFilters(cmd)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if err := o.meant(cmd, ids); err != nil {
			return err
		}
		if len(ids) == 0 {
			return o.changeChosen(cmd.Context(), streamsOf(cmd))
		}
		return s.change(cmd.Context(), streamsOf(cmd), c.method, ids)
	}
	return cmd
}

// changed is one message's outcome as programs read it.
type changed struct {
	ID    string                `json:"id"`
	State protocol.MessageState `json:"state,omitempty"` // "" where it is gone
	Left  bool                  `json:"left,omitempty"`  // it had changed since it was chosen
	Error *errorJSON            `json:"error,omitempty"`
}

func changedOf(r protocol.InboxChange) changed {
	c := changed{ID: r.ID, State: r.State, Left: r.Left}
	if r.Error != nil {
		e := errorOf(r.Error)
		c.Error = &e
	}
	return c
}

// stoppedHalfWay is err, of one of several requests, with what was done before it.
func stoppedHalfWay(err error, before string) error {
	said := *refusal.Of(err)
	said.Why = strings.TrimPrefix(said.Why+"; "+before, "; ")
	return said.Because(err)
}

// change asks for the messages, in requests of some hundred: each is judged alone, and the
// exit status is that of the first that was refused.
func (s *shared) change(ctx context.Context, io streams, method string, ids []string) error {
	if len(ids) > idsRequest { // of those of one request whoever answers sees it
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			if seen[id] {
				return usage(cutTo(printable(id), 40)+" is named twice", "nothing was changed", "name each message once")
			}
			seen[id] = true
		}
	}
	conn, err := s.connect(ctx, toWrite)
	if err != nil {
		return err
	}
	if method == protocol.MethodInboxCancel && isTerminal(io.err) && !s.json {
		tellCancelled(ctx, io.err, conn, ids)
	}
	var answer protocol.InboxChanged
	for part := range slices.Chunk(ids, idsRequest) {
		var one protocol.InboxChanged
		if err = conn.call(ctx, method, protocol.InboxIDsParams{IDs: part}, &one); err != nil {
			if n := len(answer.Results); n > 0 {
				err = stoppedHalfWay(err, fmt.Sprintf("the first %d of %d were asked for before", n, len(ids)))
			}
			break
		}
		answer.Results = append(answer.Results, one.Results...)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	if len(answer.Results) == 1 && answer.Results[0].Error != nil {
		return answer.Results[0].Error
	}
	var first error
	results := []changed{}
	for _, r := range answer.Results {
		if r.Error != nil && first == nil {
			first = r.Error
		}
		results = append(results, changedOf(r))
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

// tellCancelled says which of the first messages run, whose cancel takes until they have ended.
func tellCancelled(ctx context.Context, notices io.Writer, conn *connection, ids []string) {
	const looked = 5
	for _, id := range ids[:min(len(ids), looked)] {
		var m protocol.MessageDetail
		if err := conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: id}, &m); err != nil {
			return // the cancel itself says what is wrong
		}
		if m.State != protocol.MessageClaimed {
			continue
		}
		var status protocol.Status
		if err := conn.call(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: m.To}, &status); err != nil {
			return
		}
		what := "its worker is told, and killed unless it has ended it within its stop.timeout"
		if len(status.Actors) == 1 && status.Actors[0].Mode == string(config.Task) {
			what = "its task is killed"
		}
		fmt.Fprintf(notices, "%s runs: %s\n", m.ID, what)
	}
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

// purgeDone is what a purge says of what it did.
const purgeDone = "removed"

func newInboxPurge(s *shared) *cobra.Command {
	o := &changeOptions{inboxOptions: inboxOptions{shared: s}, endedBefore: true, yes: true, change: change{
		method: protocol.MethodInboxDrop, done: purgeDone, instead: "cancel them first",
		states: []protocol.MessageState{protocol.MessageNew, protocol.MessageDone, protocol.MessageDead, protocol.MessageParked}}}
	cmd := &cobra.Command{
		Use:   "purge --state STATE [FILTER...]",
		Short: "Remove all messages in one state",
		Long: `Remove every message in one state, with its receipts, at once and without --yes; with
filters, those of them that these choose. With --older only those that ended at least
so long ago (of NEW ones: that were sent so long ago). CLAIMED ones cannot be purged.
With --dry-run it only says how many would be removed.`,
		Example: `  sovereign inbox purge --state DONE --older 24h
  sovereign inbox purge --state DEAD --to resize --from nightly --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usage("inbox purge takes no ACTOR", "which messages are meant its filters say", "an actor's: --to "+shellQuote(args[0]))
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.state == "" {
				return usage("purge needs a state", "it removes every message in it", "sovereign inbox purge --state DONE")
			}
			if err := o.meant(cmd, nil); err != nil {
				return err
			}
			return o.purge(cmd.Context(), streamsOf(cmd))
		},
	}
	o.addFilters(cmd)
	return cmd
}

// purge leaves it to the supervisor which messages of a state go, where nothing but their
// age says so: many are removed faster than they are listed.
func (o changeOptions) purge(ctx context.Context, io streams) error {
	if o.dryRun || !o.yes || o.to+o.from+o.subject != "" {
		return o.changeChosen(ctx, io)
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
