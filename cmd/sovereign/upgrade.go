package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

type upgradeOptions struct {
	*shared
	binary string
}

func newUpgrade(s *shared) *cobra.Command {
	o := upgradeOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Have another version take over, and keep the processes",
		Long: `Have the running supervisor put another program in its place: by default the file
that it was started from, as it is now. No process is restarted, no lease is lost, no
message handed out again; the pid, the sockets and the connections stay, and requests
that wait go on waiting. Meanwhile, for some tens of milliseconds, nothing is answered.

The other program is asked first whether it can take over: it reads actors.yaml, and
says which stores it can open. Where it refuses, does not answer, or fails before it
has taken over, everything goes on as before, and the exit status says so. A change
of actors.yaml is then made as by reload; so is one that was asked for meanwhile.

It works on Linux.`,
		Example: "  sovereign upgrade\n  sovereign upgrade --binary /opt/sovereign-1.3/sovereign",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().Var((*filled)(&o.binary), "binary", "`path` of the program (default: the file that the supervisor was started from)")
	return cmd
}

func (o upgradeOptions) run(ctx context.Context, io streams) (err error) {
	params := protocol.UpgradeParams{}
	if o.binary != "" {
		if params.Binary, err = filepath.Abs(o.binary); err != nil {
			return fmt.Errorf("find the program: %w", err)
		}
	}
	var done protocol.Upgrade
	if err := o.read(ctx, protocol.MethodUpgrade, params, &done); err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, done)
	}
	_, err = fmt.Fprintf(io.out, "upgraded: %s runs %s (before: %s); %d of its processes went on; nothing was answered for %s\n", printable(done.Binary),
		done.To, done.From, done.Processes, short(time.Duration(done.TookMS)*time.Millisecond))
	return err
}
