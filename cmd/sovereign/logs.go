package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor/capture"
)

type logsOptions struct {
	*shared
	slot, lines int
	follow      bool
	reopen      bool
	time        bool
}

func newLogs(s *shared) *cobra.Command {
	o := logsOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "logs ACTOR[/SLOT] | logs --reopen",
		Short: "Show what an actor's processes wrote",
		Long: `Show the last lines that an actor's processes wrote, over rotated files too. The
files themselves are logs/ACTOR.SLOT.log in the store's folder, byte for byte as
written. It works whether or not a supervisor runs. ACTOR/SLOT, as status has it, is
that slot alone, as with --slot.

With --follow it goes on, as ` + "`events`, `inbox`" + ` and ` + "`status --watch`" + ` do: until it is
interrupted or, on Linux, nobody reads it any more, as behind ` + "`| grep -m1`" + `.

Logs are rotated by their size (log.max_size, log.keep). Where a program such as
logrotate moves the files instead, have it run ` + "`sovereign logs --reopen`" + ` afterwards:
what is written from then on goes to new files of the old names.`,
		Example: `  sovereign logs resize
  sovereign logs resize -f --slot 2
  sovereign logs web -f --lines 0 | grep -m1 listening
  sovereign logs resize --lines -1 --json | jq -r 'select(.stream == "stderr").text'
  sovereign logs --reopen`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.reopen {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MatchAll(cobra.ExactArgs(1), namedActors)(cmd, args)
		},
		ValidArgsFunction: completeActor(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.reopen {
				return o.reopenAll(cmd.Context(), streamsOf(cmd))
			}
			actor, err := o.takeSlot(args[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), streamsOf(cmd), actor)
		},
	}
	cmd.Flags().IntVar(&o.slot, "slot", 0, "only of slot `N` (0: all)")
	cmd.Flags().IntVarP(&o.lines, "lines", "n", 100, "the last `N` lines (-1: all that are kept)")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on as lines are written")
	cmd.Flags().BoolVarP(&o.time, "time", "t", false, "show when each line was written")
	cmd.Flags().BoolVar(&o.reopen, "reopen", false, "have the supervisor go on in new files, after the present ones were moved")
	for _, other := range []string{"slot", "lines", "follow", "time"} {
		cmd.MarkFlagsMutuallyExclusive("reopen", other)
	}
	return cmd
}

// takeSlot takes the slot out of ACTOR/SLOT, and returns the actor.
func (o *logsOptions) takeSlot(name string) (actor string, err error) {
	actor, number, found := strings.Cut(name, "/")
	if !found {
		return name, nil
	}
	slot, err := strconv.Atoi(number)
	if err != nil || slot < 1 || actor == "" {
		return "", usage(fmt.Sprintf("%q is no slot", cutTo(printable(name), 80)), "a slot is an actor and a number from 1, as in resize/2", "see `sovereign status` for the slots")
	}
	if o.slot != 0 && o.slot != slot {
		return "", usage(fmt.Sprintf("%s and --slot %d exclude each other", printable(name), o.slot), "they contradict", "leave one of them out")
	}
	o.slot = slot
	return actor, nil
}

func (o logsOptions) reopenAll(ctx context.Context, io streams) error {
	if err := o.write(ctx, protocol.MethodLogsReopen, protocol.Empty{}, nil); err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, protocol.Empty{})
	}
	return nil
}

func (o logsOptions) run(ctx context.Context, io streams, actor string) error {
	data := locate(o.data, os.Getenv).data
	dir := filepath.Join(data, logsFolder)
	query := capture.Query{Actor: actor, Slot: o.slot, Lines: o.lines}
	show := o.printer(io.out)
	shown := false
	emit := func(l capture.Line) error {
		shown = true
		return show(l)
	}
	if o.follow {
		status, err := o.mustKnow(ctx, actor, o.slot)
		if err != nil {
			return err
		}
		if status.Supervisor.State == protocol.SupervisorStopped {
			fmt.Fprintf(io.err, "no supervisor runs on %s: this waits for what one will write, until Ctrl-C\n", printable(data))
		}
		defer endWithReader(io.out)()
		return mayRead(dir, capture.Follow(ctx, dir, query, emit))
	}
	if err := capture.Last(dir, query, emit); err != nil || shown {
		return mayRead(dir, err)
	}
	// Logs are read without a supervisor or lock; it is asked where there are none.
	status, err := o.mustKnow(ctx, actor, o.slot)
	if err == nil && o.slot > 0 && status.Supervisor.State == protocol.SupervisorStopped {
		fmt.Fprintf(io.err, "nothing is kept of slot %d of %s; no supervisor runs that knows whether there is one\n", o.slot, printable(actor))
	} else if err == nil && o.lines != 0 && !o.json {
		fmt.Fprintln(io.err, silent(status, actor))
	}
	return err
}

// silent says that nothing is kept of what an actor's processes wrote.
func silent(status protocol.Status, actor string) string {
	text := printable(actor) + " has written nothing that is kept"
	for _, a := range status.Actors {
		if a.Actor == actor && a.Mode == string(config.Task) {
			text += "; what a task writes to stdout is its message's result: see `sovereign inbox show ID`"
		}
	}
	return text
}

// mayRead is err, with a category where the logs in dir are closed to this user.
func mayRead(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return mayNot("read the logs in "+dir, err)
	}
	return err
}

// logsFolder is where a store keeps its logs (docs/interface.md).
const logsFolder = "logs"

// logLine is one line as programs read it.
type logLine struct {
	Time    *time.Time `json:"time"` // null where it is not known
	Actor   string     `json:"actor"`
	Slot    int        `json:"slot"`
	Stream  string     `json:"stream"`
	Process string     `json:"process"`
	Text    *string    `json:"text,omitempty"`
	Base64  []byte     `json:"text_base64,omitempty"` // where it is no UTF-8
	Partial bool       `json:"partial"`
}

func (o logsOptions) printer(w io.Writer) func(capture.Line) error {
	if o.json {
		return func(l capture.Line) error { return writeJSON(w, jsonLine(l)) }
	}
	colour := prefixColour(w)
	onTerminal := isTerminal(w)
	return func(l capture.Line) error {
		before, after := colour(l.Actor)
		at := ""
		if o.time {
			at = stamp(l.Time) + " "
		}
		if onTerminal {
			l = escaped(l)
		}
		_, err := fmt.Fprintf(w, "%s%s%s.%d |%s %s\n", at, before, l.Actor, l.Slot, after, l.Text)
		return err
	}
}

// stamp is a time to the millisecond, local, always of the same width.
func stamp(at time.Time) string {
	const layout = "2006-01-02 15:04:05.000"
	if at.IsZero() {
		return fmt.Sprintf("%-*s", len(layout), "-")
	}
	return at.Local().Format(layout)
}

// escaped is l as a terminal may be given it: what would move its cursor is shown
// instead.
func escaped(l capture.Line) capture.Line {
	l.Text = []byte(escape(string(bytes.TrimSuffix(l.Text, []byte("\r"))), "\t"))
	return l
}

func jsonLine(l capture.Line) logLine {
	out := logLine{Actor: l.Actor, Slot: l.Slot, Stream: l.Stream, Process: l.Process, Partial: l.Partial}
	if !l.Time.IsZero() {
		out.Time = new(l.Time.UTC())
	}
	if utf8.Valid(l.Text) {
		out.Text = new(string(l.Text))
	} else {
		out.Base64 = bytes.Clone(l.Text) // a console queues it
	}
	return out
}
