package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

type reloadOptions struct {
	*shared
	dryRun bool
}

func newReload(s *shared) *cobra.Command {
	o := reloadOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the supervisor go by its actors.yaml as it is now",
		Long: `Have the running supervisor read the actors.yaml that it was started with once
more, and go by it. The whole file is checked first: one that is wrong is refused
with all of its problems (exit status 2), and nothing changes.

What is done is printed, one line for each actor that does not stay as it is:

  add      it is started
  remove   it takes no new work, finishes what it has, and ends; its messages stay.
           Brought back before that, it finishes too, and a new process follows
  restart  what its processes are has changed: they are stopped, then started
  scale    slots are added, or finish what they have and end
  update   nothing is stopped: the change holds from now on, or for what is started next

Processes of actors that do not appear run on. A task that runs ends as it began.
What was stopped stays so. What has failed is started anew if anything of it has
changed. The command returns once every slot has been told; see status for how
far they are. A change of data is refused: the store does not move.

A service (one that NOTIFY_SOCKET was given to, or without a terminal) does the same
on SIGHUP.`,
		Example: "  sovereign reload --dry-run\n  sovereign reload && sovereign status --watch",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "print what would be done, and do nothing")
	return cmd
}

func (o reloadOptions) run(ctx context.Context, io streams) error {
	var done protocol.Reload
	if err := o.read(ctx, protocol.MethodReload, protocol.ReloadParams{DryRun: o.dryRun}, &done); err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, done)
	}
	if err := printReload(io.out, done, terminalWidth(io.out)); err != nil {
		return err
	}
	for _, c := range done.Changes {
		if c.Action != string(supervisor.ActionRemove) {
			continue
		}
		var status protocol.Status
		if err := o.read(ctx, protocol.MethodStatus, protocol.StatusParams{Actor: c.Actor}, &status); err != nil || len(status.Actors) == 0 {
			continue // it has gone, or is not to be asked: what was done has been said
		}
		if n := status.Actors[0].Inbox.New; n > 0 {
			fmt.Fprintf(io.out, "%s to %s until it is declared again: see `sovereign inbox %s`, end with `sovereign inbox cancel ID`\n",
				waits(n), c.Actor, c.Actor)
		}
	}
	return nil
}

// waits is "1 message waits", "2 messages wait".
func waits(n int64) string {
	if n == 1 {
		return "1 message waits for delivery"
	}
	return plural(n, "message") + " wait for delivery"
}

func printReload(w io.Writer, r protocol.Reload, width int) error {
	if len(r.Changes) > 0 {
		t := table{columns: []column{{name: "ACTOR", gives: 3, least: 12}, {name: "ACTION"}, {name: "SLOTS", drops: 1},
			{name: "CHANGED", gives: 5, least: 12}, {name: "NOTE", gives: 4, least: 12, drops: 2}}}
		for _, c := range r.Changes {
			t.add(c.Actor, c.Action, slotsText(c.Replicas), strings.Join(groups(c.Keys), " "), c.Note)
		}
		if err := t.write(w, width); err != nil {
			return err
		}
	}
	verb := "reloaded"
	if !r.Applied {
		verb = "dry run, nothing was done"
	}
	_, err := fmt.Fprintf(w, "%s: %s changed, %d unchanged\n", verb, plural(int64(len(r.Changes)), "actor"), r.Unchanged)
	return err
}

func slotsText(r protocol.Replicas) string {
	if r.From == r.To {
		return fmt.Sprint(r.To)
	}
	return fmt.Sprintf("%d→%d", r.From, r.To)
}

// groups are keys with those of one mapping together: log.keep,max_size.
func groups(keys []string) []string {
	var out []string
	for _, key := range keys {
		outer, inner, nested := strings.Cut(key, ".")
		last := len(out) - 1
		if nested && last >= 0 && strings.HasPrefix(out[last], outer+".") {
			out[last] += "," + inner
			continue
		}
		out = append(out, key)
	}
	return slices.Clip(out)
}
