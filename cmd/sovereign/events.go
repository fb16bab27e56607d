package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type eventsOptions struct {
	*shared
	actor  string
	after  uint64
	lines  int
	follow bool
}

func newEvents(s *shared) *cobra.Command {
	o := eventsOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the journal: what happened to actors and messages",
		Long: `Show the journal, oldest first: starts and exits, attempts and how they ended,
what recovery did. With --follow it goes on as things happen, until interrupted
or until the supervisor is gone. With --json each event is one line.`,
		Example: `  sovereign events --lines 20
  sovereign events --follow --actor resize
  sovereign events --json | jq 'select(.kind == "exited")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().Var((*filled)(&o.actor), "actor", "only events of this `actor`")
	cmd.Flags().Uint64Var(&o.after, "after", 0, "only events after this `seq`")
	cmd.Flags().IntVarP(&o.lines, "lines", "n", -1, "only the last `N` (-1: all that are kept)")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on as things happen")
	_ = cmd.RegisterFlagCompletionFunc("actor", completeActor(s))
	return cmd
}

func (o eventsOptions) run(ctx context.Context, io streams) error {
	conn, err := o.connect(ctx, toRead)
	if err != nil {
		return err
	}
	defer conn.Close()
	show := func(e protocol.Event) error { return o.print(io.out, e) }
	shown := false
	next, err := o.past(ctx, conn, func(e protocol.Event) error {
		shown = true
		return show(e)
	})
	if err == nil && !shown && o.actor != "" { // what was removed may still have some
		_, err = o.mustKnow(ctx, o.actor, 0)
	}
	if err != nil || !o.follow {
		return err
	}
	if err := conn.mustRun("follow the journal"); err != nil {
		return err
	}
	defer endWithReader(io.out)()
	return followEvents(ctx, conn, next, o.actor, show)
}

// past shows what the journal holds and returns where it ends.
func (o eventsOptions) past(ctx context.Context, conn *connection, show func(protocol.Event) error) (uint64, error) {
	var last []protocol.Event
	next := o.after
	for {
		var page protocol.Events
		params := protocol.EventsListParams{After: next, Limit: eventsPage, Actor: o.actor}
		if err := conn.call(ctx, protocol.MethodEventsList, params, &page); err != nil {
			return 0, err
		}
		for _, e := range page.Events {
			if o.lines >= 0 {
				last = append(last, e)
				last = last[max(0, len(last)-o.lines):]
			} else if err := show(e); err != nil {
				return 0, err
			}
		}
		if page.Next <= next {
			break
		}
		next = page.Next
	}
	for _, e := range last {
		if err := show(e); err != nil {
			return 0, err
		}
	}
	return next, nil
}

const (
	eventsPage = 500
	// eventsWait is how long one request waits for the next event. It bounds how
	// long a connection stands idle, not how soon an event is seen.
	eventsWait = 10 * time.Minute
)

// followEvents calls show for each event after next as it happens, until ctx
// ends, which is no error, or the supervisor is gone, which is.
func followEvents(ctx context.Context, conn *connection, next uint64, actor string, show func(protocol.Event) error) error {
	for {
		var page protocol.Events
		params := protocol.EventsListParams{After: next, Limit: eventsPage, Actor: actor, Wait: protocol.Duration(eventsWait)}
		if err := conn.call(ctx, protocol.MethodEventsList, params, &page); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, e := range page.Events {
			if err := show(e); err != nil {
				return err
			}
		}
		next = max(next, page.Next)
	}
}

func (o eventsOptions) print(w io.Writer, e protocol.Event) error {
	if o.json {
		return writeJSON(w, e)
	}
	_, err := fmt.Fprintln(w, cutTo(eventLine(e, time.Now()), terminalWidth(w)))
	return err
}

func eventLine(e protocol.Event, now time.Time) string {
	parts := []string{clock(e.At, now)}
	switch {
	case e.Actor != "" && e.Slot > 0:
		parts = append(parts, fmt.Sprintf("%s/%d", e.Actor, e.Slot))
	case e.Actor != "":
		parts = append(parts, e.Actor)
	}
	parts = append(parts, string(e.Kind))
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Attempt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", e.Attempt))
	}
	if e.Category != "" && e.Category != string(e.Kind) {
		parts = append(parts, "["+e.Category+"]")
	}
	if e.Text != "" {
		parts = append(parts, printable(e.Text))
	}
	return strings.Join(parts, "  ")
}
