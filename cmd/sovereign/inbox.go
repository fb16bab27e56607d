package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

type inboxOptions struct {
	*shared
	state, from, subject, after string
	older                       span
	limit, last                 int
	follow                      bool
	rest                        bool // with follow: begin with all that came after the cursor
}

func newInbox(s *shared) *cobra.Command {
	o := inboxOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "inbox [ACTOR]",
		Short: "List messages, and look after them",
		Long: `List the messages of every actor, or of one, in the order in which they were
sent; with --last the newest, newest first. It works whether or not a supervisor
runs. With --follow it begins with the newest, as they stand and in the order in which
they were sent, or with all that came after --after, and goes on: it shows each message
that is sent, at once, and again whenever something happens to it.`,
		Example: `  sovereign inbox
  sovereign inbox resize --state DEAD
  sovereign inbox --last 10
  sovereign inbox resize --follow --last 1
  sovereign inbox --older 24h --limit 10 --json | jq -r '.messages[].id'`,
		Args:              inboxArgs,
		ValidArgsFunction: completeRecipient(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("last") && o.last < 1 {
				return usage("--last must be at least 1", "there is no page of fewer messages", "leave it out for the first page")
			}
			if o.follow && !cmd.Flags().Changed("limit") {
				if o.rest = cmd.Flags().Changed("after"); !o.rest && !cmd.Flags().Changed("last") {
					o.last = o.limit // what is new is what one follows
				}
			}
			return listMeant(args, helpMeant(cmd, args, o.run(cmd.Context(), streamsOf(cmd), argOr(args, ""))))
		},
	}
	f := cmd.Flags()
	f.Var((*filled)(&o.state), "state", "only in this `state`: NEW, CLAIMED, DONE, DEAD or PARKED")
	f.Var((*filled)(&o.from), "from", "only from this `sender`")
	f.Var((*filled)(&o.subject), "subject", "only with this `text` in the subject")
	f.Var(&o.older, "older", "only sent at least so long ago")
	f.IntVar(&o.limit, "limit", 50, "at most `N`")
	f.IntVar(&o.last, "last", 0, "the newest `N`, newest first (with --follow: newest last)")
	f.StringVar(&o.after, "after", "", "go on after this `cursor`, the next of the page before")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on as things happen")
	for _, other := range []string{"limit", "after"} {
		exclude(cmd, "last", other)
	}
	_ = cmd.RegisterFlagCompletionFunc("state", completeState)
	cmd.AddCommand(newInboxShow(s), newInboxRetry(s), newInboxCancel(s), newInboxDrop(s), newInboxPurge(s), newInboxExport(s), newInboxImport(s))
	return cmd
}

// listMeant is err; where it says that there is no actor list, it says how to get the list.
func listMeant(args []string, err error) error {
	if word := argOr(args, ""); word != "list" && word != "ls" || !refusal.Has(err, refusal.UnknownActor) {
		return err
	}
	r := *refusal.Of(err)
	r.Next = "for the list: sovereign inbox"
	return &r
}

// inboxArgs takes one actor. Two words are a command that does not exist.
func inboxArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return unknownCommand(cmd, args[0])
	}
	return namedActors(cmd, args)
}

func (o inboxOptions) run(ctx context.Context, io streams, actor string) error {
	if o.limit < 1 {
		return usage("--limit must be at least 1", "there is no page of fewer messages", "leave it out for 50")
	}
	conn, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer conn.Close()
	if o.follow {
		return o.followInbox(ctx, io, conn, actor)
	}
	page, err := o.list(ctx, io, conn, actor)
	if err == nil && len(page.Messages) == 0 && actor != "" {
		err = o.known(ctx, conn, actor) // a misspelt name is not an empty inbox
	}
	switch {
	case err != nil:
		return err
	case o.json:
		return writeJSON(io.out, page)
	case len(page.Messages) == 0:
		_, err := fmt.Fprintln(io.err, "no such messages")
		return err
	}
	if err := printInbox(io.out, page.Messages, time.Now(), terminalWidth(io.out)); err != nil {
		return err
	}
	if page.Next != "" {
		fmt.Fprintf(io.err, "more: --after %s    the newest: --last %d\n", page.Next, o.limit)
	}
	return nil
}

// page asks once. What comes may be fewer than --limit, and more follow.
func (o inboxOptions) page(ctx context.Context, conn *connection, actor string) (protocol.Inbox, error) {
	var page protocol.Inbox
	err := conn.call(ctx, protocol.MethodInboxList, protocol.InboxListParams{Actor: actor, State: o.state, From: o.from,
		Subject: o.subject, Older: protocol.Duration(o.older), Limit: min(o.limit, mostListed), After: o.after, Newest: o.last > 0}, &page)
	return page, err
}

// mostListed is how many messages one request asks for.
const mostListed = 1000

// list asks until there are --limit or --last messages, or no more. On a terminal it
// tells how many it has looked at, which takes a while where few of many match.
func (o inboxOptions) list(ctx context.Context, io streams, conn *connection, actor string) (protocol.Inbox, error) {
	if o.last > 0 {
		o.limit = o.last
	}
	whole := protocol.Inbox{Messages: []protocol.Message{}}
	shown := newCounter(io.err, "looking for messages", o.json)
	defer shown.end()
	for looked := 0; ; shown.count(int64(looked)) {
		page, err := o.page(ctx, conn, actor)
		if err != nil {
			return page, err
		}
		whole.Messages, whole.Next = append(whole.Messages, page.Messages...), page.Next
		o.limit -= len(page.Messages)
		looked += page.Looked
		switch {
		case page.Next != "" && o.limit > 0:
			o.after = page.Next
			continue
		case o.last > 0:
			whole.Next = "" // it would lead to older ones
		}
		return whole, nil
	}
}

// inboxTable is the table of messages, with the column of their last failures where any
// has one.
func inboxTable(failures bool) table {
	t := table{columns: []column{{name: "ID"}, {name: "TO", gives: 5}, {name: "FROM", gives: 6, drops: 3}, {name: "SUBJECT", gives: 9, drops: 1},
		{name: "STATE"}, {name: "AGE", number: true}, {name: "ATTEMPTS", number: true}, {name: "CLAIM", gives: 7, drops: 4}}}
	if failures {
		t.columns = append(t.columns, column{name: "LAST FAILURE", gives: 8, drops: 2})
	}
	return t
}

func printInbox(w io.Writer, messages []protocol.Message, now time.Time, width int) error {
	failures := slices.ContainsFunc(messages, func(m protocol.Message) bool { return failureOf(m) != "" })
	t := inboxTable(failures)
	for _, m := range messages {
		row := []string{m.ID, m.To, m.From, m.Subject, stateOf(m, now), age(m.CreatedAt, now), attempts(m), claimOf(m)}
		if failures {
			row = append(row, failureOf(m))
		}
		t.add(row...)
	}
	return t.write(w, width)
}

// stateOf is the state, and of a message that is not due yet, when it will be.
func stateOf(m protocol.Message, now time.Time) string {
	if m.State == protocol.MessageNew && m.AvailableAt.After(now) {
		return "NEW in " + short(m.AvailableAt.Sub(now))
	}
	return string(m.State)
}

func attempts(m protocol.Message) string {
	if m.MaxAttempts == 0 {
		return strconv.Itoa(m.Attempts)
	}
	return fmt.Sprintf("%d/%d", m.Attempts, m.MaxAttempts)
}

// claimOf says who works on m under which token; "" = nobody.
func claimOf(m protocol.Message) string {
	if m.Claim == nil {
		return ""
	}
	text := fmt.Sprintf("%s/%d #%d %s", m.To, m.Claim.Slot, m.Claim.Token, short(time.Duration(m.Claim.RemainingMS)*time.Millisecond))
	return strings.TrimSpace(text + " " + m.Claim.Progress)
}

// failureOf says on one line how the last attempt of m failed; "" = none did, or it is
// DONE after all.
func failureOf(m protocol.Message) string {
	if m.LastFailure == nil || m.State == protocol.MessageDone {
		return ""
	}
	return strings.TrimSpace(m.LastFailure.Category + " " + inShort(m.LastFailure.Reason))
}

// wants applies the filters of the list to one message.
func (o inboxOptions) wants(m protocol.Message, actor string, now time.Time) bool {
	return (actor == "" || m.To == actor) &&
		(o.state == "" || strings.EqualFold(string(m.State), o.state)) &&
		(o.from == "" || m.From == o.from) &&
		strings.Contains(m.Subject, o.subject) &&
		!m.CreatedAt.After(now.Add(-time.Duration(o.older)))
}

// line is one message while following, as it has been since at.
func (o inboxOptions) line(w io.Writer, m protocol.Message, at time.Time) error {
	if o.json {
		return writeJSON(w, m)
	}
	now := time.Now()
	parts := []string{clock(at, now), m.ID, m.To, stateOf(m, now), attempts(m)}
	for _, more := range []string{m.Subject, claimOf(m), failureOf(m)} {
		if more != "" {
			parts = append(parts, printable(more))
		}
	}
	_, err := fmt.Fprintln(w, cutTo(strings.Join(parts, "  "), terminalWidth(w)))
	return err
}

// known refuses, unknown_actor, the name of an actor that never was; where it looks
// like a command of inbox, it says so.
func (s *shared) known(ctx context.Context, conn *connection, actor string) error {
	err := conn.call(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: actor}, nil)
	if !refusal.Has(err, refusal.UnknownActor) {
		return err
	}
	inbox := newInbox(&shared{})
	inbox.SuggestionsMinimumDistance = 2
	if close := inbox.SuggestionsFor(actor); len(close) > 0 {
		r := *refusal.Of(err)
		r.Next = "did you mean `sovereign inbox " + close[0] + "`?"
		return &r
	}
	return s.didYouMean(ctx, err, actor)
}
