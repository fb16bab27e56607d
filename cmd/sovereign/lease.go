package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
)

func newLease(s *shared) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "lease",
		Short:   "Show leases, and reset a damaged one",
		Long:    "A lease is the right of one process to host one slot of an actor, under a token.",
		Example: "  sovereign lease list",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRoot(cmd, args)
		},
	}
	cmd.AddCommand(newLeaseList(s), newLeaseReset(s))
	return cmd
}

func newLeaseList(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the leases on record",
		Long:    "List every lease on record, damaged ones too, with its token and the time left.",
		Example: "  sovereign lease list\n  sovereign lease list --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.listLeases(cmd.Context(), streamsOf(cmd)) },
	}
}

func (s *shared) listLeases(ctx context.Context, io streams) error {
	var leases protocol.Leases
	if err := s.read(ctx, protocol.MethodLeasesList, protocol.Empty{}, &leases); err != nil {
		return err
	}
	if s.json {
		return writeJSON(io.out, leases)
	}
	if len(leases.Leases) == 0 {
		_, err := fmt.Fprintln(io.err, "no leases on record")
		return err
	}
	t := table{columns: []column{{name: "SLOT", gives: 5}, {name: "PROCESS"}, {name: "TOKEN", number: true}, {name: "LEFT", gives: 9}}}
	for _, l := range leases.Leases {
		left := short(time.Duration(l.RemainingMS) * time.Millisecond)
		switch {
		case l.Error != nil:
			left = l.Error.Error()
		case l.Expired:
			left = "expired"
		}
		t.add(fmt.Sprintf("%s/%d", l.Actor, l.Slot), l.Process, l.Token.String(), left)
	}
	return t.write(io.out, terminalWidth(io.out))
}

func newLeaseReset(s *shared) *cobra.Command {
	return &cobra.Command{
		Use:   "reset ACTOR[/SLOT]",
		Short: "Remove a lease: the way out of a corrupt one",
		Long: `Remove the record of a slot's lease, or of all slots of an actor. It is refused,
actor_lease_held, while a living process holds it. Tokens go on from where they
were.`,
		Example:           "  sovereign lease reset resize/2",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeActor(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.resetLease(cmd.Context(), streamsOf(cmd), args[0])
		},
	}
}

func (s *shared) resetLease(ctx context.Context, io streams, what string) error {
	params, err := parseSlot(what)
	if err != nil {
		return err
	}
	var reset protocol.LeasesReset
	if err := s.write(ctx, protocol.MethodLeasesReset, params, &reset); err != nil {
		return err
	}
	if reset.Reset == 0 {
		if _, err := s.mustKnow(ctx, params.Actor, params.Slot); err != nil {
			return err
		}
	}
	if s.json {
		return writeJSON(io.out, reset)
	}
	_, err = fmt.Fprintf(io.out, "reset %s\n", plural(int64(reset.Reset), "lease"))
	return err
}

// parseSlot reads ACTOR or ACTOR/SLOT.
func parseSlot(text string) (protocol.LeasesResetParams, error) {
	actor, number, one := strings.Cut(text, "/")
	params := protocol.LeasesResetParams{Actor: actor}
	if !one {
		return params, nil
	}
	slot, err := strconv.Atoi(number)
	if err != nil || slot < 1 {
		return params, usage(fmt.Sprintf("%q is no slot", cutTo(printable(text), 40)), "a slot is ACTOR/NUMBER, from 1", "see `sovereign lease list`")
	}
	params.Slot = slot
	return params, nil
}
