package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type statusOptions struct {
	*shared
	watch, check bool
}

func newStatus(s *shared) *cobra.Command {
	o := statusOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "status [ACTOR]",
		Short: "Show actors, their processes, leases and inboxes",
		Long: `Show every actor, or one: for each slot its state, pid, uptime, restarts, and the
token of its lease with the time left; and how many messages its inbox holds in
each state. The last line is the size of the store, and how much of that is free: it
is used again before the file grows. Without a supervisor it shows what is on record.

With --check nothing is printed while all is well; the exit status is 1 when no
supervisor runs, the store would not open or its disk is full, an actor is failed or
sick, or dead letters wait. With --json it prints {"ok", "reasons"}.`,
		Example: `  sovereign status
  sovereign status resize --json
  sovereign status --check || mail -s "sovereign" ops@example.org < /dev/null`,
		Args:              cobra.MatchAll(cobra.MaximumNArgs(1), namedActors),
		ValidArgsFunction: completeActor(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), streamsOf(cmd), argOr(args, ""))
		},
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show it again whenever something happens")
	cmd.Flags().BoolVar(&o.check, "check", false, "exit 1 unless all is well")
	exclude(cmd, "watch", "check")
	return cmd
}

func (o statusOptions) run(ctx context.Context, io streams, actor string) error {
	if o.watch {
		return o.watchStatus(ctx, io, actor)
	}
	status, err := o.fetch(ctx, actor)
	switch {
	case err != nil:
		return err
	case o.check:
		return o.judge(io, status)
	case o.json:
		return writeJSON(io.out, status)
	}
	return printStatus(io.out, status, terminalWidth(io.out))
}

func (o statusOptions) fetch(ctx context.Context, actor string) (protocol.Status, error) {
	var status protocol.Status
	err := o.read(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: actor}, &status)
	return status, o.didYouMean(ctx, err, actor)
}

// judge ends with exit status 1 and the reasons where something is not well.
func (o statusOptions) judge(io streams, status protocol.Status) error {
	reasons := unwell(status)
	if o.json {
		if err := writeJSON(io.out, map[string]any{"ok": len(reasons) == 0, "reasons": reasons}); err != nil {
			return err
		}
	} else {
		for _, reason := range reasons {
			fmt.Fprintln(io.out, reason)
		}
	}
	if len(reasons) > 0 {
		return statusError{status: exitFailed}
	}
	return nil
}

// unwell says what a person must look at; never nil.
func unwell(status protocol.Status) []string {
	reasons := []string{}
	if status.Supervisor.State == protocol.SupervisorStopped {
		reasons = append(reasons, "no supervisor runs")
	}
	if status.Store != nil && status.Store.Full {
		reasons = append(reasons, "the store is refusing: "+fullNote)
	}
	if status.Store != nil && status.Store.Refused != "" {
		reasons = append(reasons, "the store would not open: "+printable(status.Store.Refused))
	}
	for _, a := range status.Actors {
		if a.State == protocol.SlotFailed {
			reasons = append(reasons, strings.TrimSuffix(fmt.Sprintf("%s is failed: %s", a.Actor, inShort(a.Why)), ": "))
		}
		if a.Sick != "" {
			reasons = append(reasons, a.Actor+" is sick: "+inShort(a.Sick))
		}
		if a.Inbox.Dead > 0 {
			reasons = append(reasons, fmt.Sprintf("%s has %s: sovereign inbox %s --state DEAD", a.Actor, plural(a.Inbox.Dead, "dead letter"), a.Actor))
		}
	}
	return reasons
}

// noteLines are the lines that the first one, or a note below the table, may take on a terminal.
const noteLines = 4

func printStatus(w io.Writer, status protocol.Status, width int) error {
	for _, line := range wrapped(headline(status.Supervisor), width, noteLines) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(status.Actors) == 0 {
		_, err := fmt.Fprintln(w, "no actors on record")
		return err
	}
	t := table{columns: []column{{name: "ACTOR", gives: 5, least: 12}, {name: "STATE", gives: 4, least: 11},
		{name: "PID", number: true, drops: 2}, {name: "UP", number: true, drops: 4}, {name: "RESTARTS", number: true, drops: 3},
		{name: "LEASE", gives: 9, least: 6, drops: 1},
		{name: "NEW", number: true}, {name: "CLAIMED", number: true}, {name: "DONE", number: true},
		{name: "DEAD", number: true}, {name: "PARKED", number: true}}}
	var notes []string
	for _, a := range status.Actors {
		addActor(&t, a)
		if a.Why != "" {
			notes = append(notes, a.Actor+": "+inShort(a.Why))
			for _, s := range a.Slots {
				if s.Why == a.Why && s.Next != "" {
					notes = append(notes, a.Actor+": next: "+printable(s.Next))
					break
				}
			}
		}
		if a.Sick != "" {
			notes = append(notes, a.Actor+" is sick: "+inShort(a.Sick))
		}
		for _, s := range a.Slots {
			if says := said(s); says != "" {
				notes = append(notes, fmt.Sprintf("%s says: %s", slotName(a, s), says))
			}
			if s.Why != "" && s.Why != a.Why {
				notes = append(notes, fmt.Sprintf("%s/%d: %s", a.Actor, s.Slot, inShort(s.Why)))
				if s.Next != "" {
					notes = append(notes, fmt.Sprintf("%s/%d: next: %s", a.Actor, s.Slot, printable(s.Next)))
				}
			}
			if s.LogLost > 0 {
				notes = append(notes, fmt.Sprintf("%s/%d: %s of its output could not be kept", a.Actor, s.Slot, size(s.LogLost)))
			}
		}
	}
	if err := t.write(w, width); err != nil {
		return err
	}
	if status.Store != nil {
		notes = append(notes, room(*status.Store))
	}
	for _, note := range notes {
		for _, line := range wrapped(note, width, noteLines) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// room says what the store takes.
func room(s protocol.StoreStatus) string {
	text := "store: " + size(s.FileBytes)
	if s.FreeBytes != nil {
		text += ", of which " + size(*s.FreeBytes) + " are free and used again first"
	}
	if s.Full {
		text += "; " + fullNote
	}
	if s.Refused != "" {
		text += "; nothing can be started or sent: " + printable(s.Refused) + ": sovereign verify"
	}
	return text
}

// fullNote is what is so while the disk is full.
const fullNote = "its disk is full: ends of attempts are stored, all else is refused until there is room"

func headline(s protocol.SupervisorStatus) string {
	if s.State == protocol.SupervisorStopped {
		return "no supervisor runs; this is what is on record"
	}
	line := fmt.Sprintf("supervisor %s, pid %d, up %s", s.State, s.PID, short(s.Uptime.Std()))
	if s.Config != "" {
		line += ", " + printable(s.Config)
	}
	return line
}

// addActor adds a row for each slot; the inbox stands in the first, since the
// slots share it.
func addActor(t *table, a protocol.ActorStatus) {
	inbox := []string{count(a.Inbox.New), count(a.Inbox.Claimed), count(a.Inbox.Done), count(a.Inbox.Dead), count(a.Inbox.Parked)}
	if a.Mode == "daemon" {
		inbox = []string{"-", "-", "-", "-", "-"}
	}
	state := string(a.State)
	if a.Paused {
		state += " (paused)"
	}
	if len(a.Slots) == 0 {
		t.add(append([]string{a.Actor, state, "-", "-", "-", "-"}, inbox...)...)
		return
	}
	for i, s := range a.Slots {
		name, slotState := slotName(a, s), string(s.State)
		if a.Paused {
			slotState += " (paused)"
		}
		cells := []string{name, slotState, "-", "-", strconv.Itoa(s.Restarts), "-"}
		if s.PID > 0 {
			cells[2], cells[3] = strconv.Itoa(s.PID), short(s.Uptime.Std())
		}
		if s.Lease != nil {
			// The time first: a narrow terminal cuts the token.
			cells[5] = fmt.Sprintf("%s #%d", short(time.Duration(s.Lease.RemainingMS)*time.Millisecond), s.Lease.Token)
		}
		if i > 0 {
			inbox = []string{"", "", "", "", ""}
		}
		t.add(append(cells, inbox...)...)
	}
}

// slotName is the actor's, with the slot's number where there are several.
func slotName(a protocol.ActorStatus, s protocol.SlotStatus) string {
	if len(a.Slots) > 1 {
		return fmt.Sprintf("%s/%d", a.Actor, s.Slot)
	}
	return a.Actor
}

// said is what a process says of itself, on one line; "" is nothing.
func said(s protocol.SlotStatus) string {
	var words []string
	if s.Stopping {
		words = append(words, "stopping")
	}
	if s.Reloading {
		words = append(words, "reloading")
	}
	if s.Says != "" {
		words = append(words, printable(s.Says))
	}
	return strings.Join(words, ", ")
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
