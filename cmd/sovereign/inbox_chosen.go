package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

// A changeOptions says which messages a command changes: those that it is given the ids
// of, or those that its filters choose.
type changeOptions struct {
	inboxOptions
	change
	to          string
	yes, dryRun bool
	endedBefore bool // --older is about the end of a message, not its send
}

// addFilters gives a command that changes messages the filters of the list.
func (o *changeOptions) addFilters(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*filled)(&o.to), "to", "choose those to this `actor`")
	f.Var((*filled)(&o.state), "state", "choose those in this `state`: "+o.change.stateNames())
	f.Var((*filled)(&o.from), "from", "choose those from this `sender`")
	f.Var((*filled)(&o.subject), "subject", "choose those with this `text` in the subject")
	if o.endedBefore {
		f.Var(&o.older, "older", "choose those that ended, or of NEW ones were sent, at least so long ago")
	} else {
		f.Var(&o.older, "older", "choose those sent at least so long ago")
		f.IntVar(&o.limit, "limit", 0, "at most `N` of those chosen, the first that were sent (0: all)")
	}
	f.BoolVar(&o.yes, "yes", o.yes, "do it to all that the filters choose")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say how many the filters choose")
	_ = cmd.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names := make([]cobra.Completion, len(o.states))
		for i, s := range o.states {
			names[i] = string(s)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("to", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeRecipient(o.shared)(cmd, nil, word)
	})
}

// filters are the flags that choose.
var filters = []string{"to", "state", "from", "subject", "older"}

// meant refuses a command line that names no messages, or names them twice over.
func (o *changeOptions) meant(cmd *cobra.Command, ids []string) error {
	name := cmd.Name()
	var given []string
	for _, f := range filters {
		if flag := cmd.Flags().Lookup(f); flag.Changed && flag.Value.String() != "" { // --older 0s: all are at least so old
			given = append(given, "--"+f)
		}
	}
	switch {
	case o.limit < 0:
		return usage("--limit must be at least 1", "", "")
	case len(ids) > 0 && len(given) > 0:
		return usage("ids and "+strings.Join(given, " and ")+" exclude each other", "ids name the messages, filters choose them", "see `"+cmd.CommandPath()+" --help`")
	case len(ids) > 0 && (o.dryRun || o.limit > 0):
		return usage("--dry-run and --limit are for filters", "ids name the messages", "see `sovereign inbox show "+ids[0]+"`")
	case len(ids) == 0 && len(given) == 0:
		return usage(name+" needs the ids of messages, or a filter that chooses them", "", fmt.Sprintf("sovereign inbox %s ID..., or for example sovereign inbox %s --state %s --to ACTOR --dry-run", name, name, o.states[0]))
	}
	return nil
}

// A chosenMessage is one that the filters chose, as it stood.
type chosenMessage struct {
	id, to string
	state  protocol.MessageState
}

// choose looks for the messages that the filters choose, state after state.
func (o changeOptions) choose(ctx context.Context, io streams, conn *connection) ([]chosenMessage, error) {
	states := o.states
	if o.state != "" {
		only := protocol.MessageState(strings.ToUpper(o.state))
		switch {
		case !slices.Contains(protocol.MessageStates[:], only):
			only = protocol.MessageState(o.state) // who lists them says so
		case !slices.Contains(o.states, only):
			return nil, usage(o.notIn(only), "choose with --state "+o.stateNames(), o.instead)
		}
		states = []protocol.MessageState{only}
	}
	list := o.inboxOptions
	list.limit = mostListed
	if o.endedBefore {
		list.older = 0 // it says when they were sent
	}
	now := time.Now()
	var chosen []chosenMessage
	shown := newCounter(io.err, "looking for messages", o.json)
	defer shown.end()
	looked := 0
	for _, state := range states {
		list.state, list.after = string(state), ""
		for more := true; more; more = list.after != "" {
			page, err := list.page(ctx, conn, o.to)
			if err != nil {
				return nil, err
			}
			for _, m := range page.Messages {
				if !o.old(m, now) {
					continue
				}
				chosen = append(chosen, chosenMessage{m.ID, m.To, m.State})
				if len(chosen) == o.limit {
					return chosen, nil
				}
			}
			if looked, list.after = looked+page.Looked, page.Next; list.after != "" {
				shown.count(int64(looked))
			}
		}
	}
	if len(chosen) == 0 && o.to != "" {
		// A misspelt name is not an empty inbox.
		return nil, conn.call(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: o.to}, nil)
	}
	return chosen, nil
}

// old reports whether what --older of a purge asks for has passed since m ended or, where it
// is NEW, was sent; of the others the list has seen to their age.
func (o changeOptions) old(m protocol.Message, now time.Time) bool {
	since := m.EndedAt
	if m.State == protocol.MessageNew {
		since = m.CreatedAt
	}
	return !o.endedBefore || !since.After(now.Add(-time.Duration(o.older)))
}

// A chosenCount is how many of the chosen messages are alike.
type chosenCount struct {
	To       string                `json:"to"`
	State    protocol.MessageState `json:"state"`
	Messages int64                 `json:"messages"`
}

// countChosen counts by recipient and state.
func countChosen(chosen []chosenMessage) []chosenCount {
	counts := map[chosenMessage]int64{}
	for _, m := range chosen {
		m.id = ""
		counts[m]++
	}
	out := []chosenCount{}
	for m, n := range counts {
		out = append(out, chosenCount{m.to, m.state, n})
	}
	slices.SortFunc(out, func(a, b chosenCount) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.State, b.State))
	})
	return out
}

// tellChosen is a dry run's answer.
func (o changeOptions) tellChosen(io streams, chosen []chosenMessage) error {
	counts := countChosen(chosen)
	if o.json {
		return writeJSON(io.out, map[string]any{"chosen": len(chosen), "counts": counts})
	}
	if len(chosen) == 0 {
		_, err := fmt.Fprintln(io.err, "no such messages")
		return err
	}
	t := table{columns: []column{{name: "TO", gives: 5}, {name: "STATE"}, {name: "MESSAGES", number: true}}}
	for _, c := range counts {
		t.add(c.To, string(c.State), strconv.FormatInt(c.Messages, 10))
	}
	if err := t.write(io.out, terminalWidth(io.out)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.err, "%s would be %s; nothing was changed\n", plural(int64(len(chosen)), "message"), o.done)
	return err
}

// unconfirmed refuses what --yes was not said to.
func (o changeOptions) unconfirmed(chosen []chosenMessage) error {
	const named = 5
	var kinds []string
	for i, c := range countChosen(chosen) {
		if i == named {
			kinds = append(kinds, "others")
			break
		}
		kinds = append(kinds, fmt.Sprintf("%d %s of %s", c.Messages, c.State, c.To))
	}
	return usage(plural(int64(len(chosen)), "message")+" would be "+o.done+": say --yes to that", "the filters choose "+strings.Join(kinds, ", ")+"; nothing was changed",
		"the same with --yes; --dry-run only counts")
}

// changeChosen changes what the filters choose, in requests of some hundred, each message
// by itself: whatever stops it, those before it are changed and the others are not. A
// message that has changed since it was chosen is left as it is.
func (o changeOptions) changeChosen(ctx context.Context, io streams) (err error) {
	how := toWrite
	if o.dryRun {
		how = toRead
	}
	conn, err := o.connect(ctx, how)
	if err != nil {
		return err
	}
	defer func() {
		err = o.didYouMean(ctx, errors.Join(err, conn.Close()), o.to) // which asks once more
	}()
	chosen, err := o.choose(ctx, io, conn)
	switch {
	case err != nil:
		return err
	case o.dryRun:
		return o.tellChosen(io, chosen)
	case len(chosen) > 0 && !o.yes:
		return o.unconfirmed(chosen)
	}
	out := outcomes{change: o.change, Chosen: len(chosen), Results: []changed{}}
	shown := newCounter(io.err, o.done, o.json)
	for rest := chosen; len(rest) > 0; {
		var ids []string
		state := rest[0].state
		for len(rest) > 0 && len(ids) < idsRequest && rest[0].state == state {
			ids, rest = append(ids, rest[0].id), rest[1:]
		}
		params := protocol.InboxIDsParams{IDs: ids}
		if o.state != "" || !o.whatever {
			params.State = string(state)
		}
		if o.endedBefore {
			params.Older = protocol.Duration(o.older)
		}
		var answer protocol.InboxChanged
		if err = conn.call(ctx, o.method, params, &answer); err != nil {
			break
		}
		out.add(answer.Results)
		shown.of(int64(len(chosen)-len(rest)), int64(len(chosen)))
	}
	shown.end()
	if err != nil {
		return stoppedHalfWay(err, fmt.Sprintf("%d of %s were %s before", out.Changed, plural(int64(len(chosen)), "message"), o.done))
	}
	if o.endedBefore && o.json && len(out.refused) == 0 {
		return writeJSON(io.out, protocol.InboxPurged{Removed: out.Changed})
	}
	return out.tell(io, o.json)
}

// idsRequest bounds the messages of one request of a change.
const idsRequest = 500

// outcomes are what became of the messages that filters chose.
type outcomes struct {
	change  change
	Chosen  int       `json:"chosen"`
	Changed int       `json:"changed"`
	Left    int       `json:"left"` // they had changed meanwhile
	Results []changed `json:"results"`
	running int       // cancelled, and not ended
	refused []*protocol.Error
}

func (out *outcomes) add(results []protocol.InboxChange) {
	for _, r := range results {
		if r.Left || r.Error != nil && out.change.over(r.Error) {
			r.Left, r.Error = true, nil // that it was left is no error
		}
		c := changedOf(r)
		switch {
		case c.Left:
			out.Left++
		case r.Error != nil:
			out.refused = append(out.refused, r.Error)
		case out.change.method == protocol.MethodInboxCancel && r.State == protocol.MessageDone:
			c.Left = true // its completion was first
			out.Left++
		default:
			out.Changed++
			if r.State == protocol.MessageClaimed {
				out.running++
			}
		}
		out.Results = append(out.Results, c)
	}
}

func (out *outcomes) tell(io streams, asJSON bool) error {
	if asJSON {
		if err := writeJSON(io.out, out); err != nil {
			return err
		}
	} else if err := out.say(io.out, io.err); err != nil {
		return err
	}
	if len(out.refused) > 0 {
		return statusError{status: statusOf(out.refused[0])}
	}
	return nil
}

func (out *outcomes) say(w, notices io.Writer) error {
	const told = 5
	for i, r := range out.refused {
		if i == told {
			fmt.Fprintf(notices, "sovereign: and %d more were refused\n", len(out.refused)-told)
			break
		}
		report(r, false, w, notices)
	}
	if out.Chosen == 0 && out.change.done != purgeDone {
		_, err := fmt.Fprintln(notices, "no such messages")
		return err
	}
	text := fmt.Sprintf("%s %s", out.change.done, plural(int64(out.Changed), "message"))
	if out.running > 0 {
		text += fmt.Sprintf(", of which %d still run", out.running)
	}
	if out.Left > 0 {
		text += fmt.Sprintf("; %d had changed meanwhile and were left as they are", out.Left)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
