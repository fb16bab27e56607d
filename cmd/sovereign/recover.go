package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

type recoverOptions struct {
	*shared
	acceptRollback bool
}

func newRecover(s *shared) *cobra.Command {
	o := recoverOptions{shared: s}
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Put a stopped store in order",
		Long: `Do on a stopped store what run does before it starts anything: end the processes
that a killed supervisor left, then make one pass over the store. It reports expired
leases, sweeps expired claims, recovers abandoned attempts and reclaims workspaces,
prints what it did, and exits with 0. While a supervisor runs it is refused,
store_locked.

With --accept-rollback a store that is refused as store_rolled_back is accepted as
it is: its tokens go on in a new epoch, and what it holds as claimed is PARKED.`,
		Example: "  sovereign recover\n  sovereign recover --data /var/lib/jobs --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streamsOf(cmd)) },
	}
	cmd.Flags().BoolVar(&o.acceptRollback, "accept-rollback", false, "accept a store that is older than its high-water mark")
	return cmd
}

func (o recoverOptions) run(ctx context.Context, io streams) (err error) {
	at := locate(o.data, os.Getenv)
	if at.inherited.Process != "" {
		return orphaned(nil)
	}
	if err := mustExist(at.data); err != nil {
		return err
	}
	db, err := openAlone(ctx, at.data, bolt.Options{AcceptRollback: o.acceptRollback})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	log := slog.New(newTextLog(io.err, slog.LevelWarn, colourful(io.err)))
	box, err := mailbox.Open(ctx, db, leasesOf(db), mailbox.Options{Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	done, err := reconcile(ctx, box, db.Epoch(), at.data, log)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(io.out, done)
	}
	return done.print(io.out)
}

// A reconciliation is what recover did, as programs read it.
type reconciliation struct {
	LeftoversEnded int            `json:"leftovers_ended"` // processes
	Stuck          []string       `json:"stuck"`           // slots of which something does not die
	ExpiredLeases  []string       `json:"expired_leases"`  // slots
	DamagedLeases  []string       `json:"damaged_leases"`  // slots
	Parked         []recoveredRef `json:"parked"`          // after a restore or an accepted rollback
	Swept          []recoveredRef `json:"swept"`
	Recovered      []recoveredRef `json:"recovered"`
	Released       []string       `json:"released"` // slots
	Workspaces     []string       `json:"workspaces"`
}

// recoveredRef is a claim that was ended.
type recoveredRef struct {
	ID    string      `json:"id"`
	Token fence.Token `json:"token"`
}

// reconcile ends leftovers, then makes the pass of P5 on box, whose store is in data and
// at that epoch. The caller holds the lock.
func reconcile(ctx context.Context, box *mailbox.Box, epoch uint64, data string, log *slog.Logger) (_ reconciliation, err error) {
	if err := box.Load(ctx); err != nil {
		return reconciliation{}, err
	}
	host, err := process.NewHost(log)
	if err != nil {
		return reconciliation{}, fmt.Errorf("prepare to end leftovers: %w", err)
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	left, err := supervisor.EndLeftovers(ctx, host, box.Leases(), data, log)
	if err != nil {
		return reconciliation{}, err
	}
	parked, err := box.ParkRestored(ctx, epoch)
	if err != nil {
		return reconciliation{}, err
	}
	report, err := recovery.New(box, recovery.NewWorkspaces(data), log).Reconcile(ctx, left.Alive())
	if err != nil {
		return reconciliation{}, err
	}
	done := told(left, report)
	done.Parked = refs(parked)
	return done, nil
}

// told is a report as programs read it: lists are never null.
func told(left supervisor.Leftovers, r recovery.Report) reconciliation {
	out := reconciliation{LeftoversEnded: left.Ended, Stuck: []string{}, ExpiredLeases: recordSlots(r.ExpiredLeases),
		DamagedLeases: recordSlots(r.DamagedLeases), Swept: refs(r.Swept), Recovered: refs(r.Recovered),
		Released: []string{}, Workspaces: append([]string{}, r.Workspaces...)}
	for _, l := range left.Stuck {
		out.Stuck = append(out.Stuck, fmt.Sprintf("%s: %v; what it holds is left as it is", l.Slot, l.Err))
	}
	slices.Sort(out.Stuck)
	for _, slot := range r.Released {
		out.Released = append(out.Released, slot.String())
	}
	return out
}

func recordSlots(records []fence.Record) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, r.Slot.String())
	}
	return out
}

func refs(list []mailbox.Ref) []recoveredRef {
	out := []recoveredRef{}
	for _, ref := range list {
		out = append(out, recoveredRef{ID: ref.ID.String(), Token: ref.Token})
	}
	return out
}

// empty says that there was nothing to do.
func (r reconciliation) empty() bool {
	return r.LeftoversEnded+len(r.Stuck)+len(r.ExpiredLeases)+len(r.DamagedLeases)+len(r.Parked)+len(r.Swept)+
		len(r.Recovered)+len(r.Released)+len(r.Workspaces) == 0
}

func (r reconciliation) print(w io.Writer) error {
	say := func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n", args...)
	}
	if r.LeftoversEnded > 0 {
		say("ended %d leftover processes", r.LeftoversEnded)
	}
	for _, s := range r.Stuck {
		say("stuck %s", s)
	}
	for _, s := range r.ExpiredLeases {
		say("lease of %s had expired", s)
	}
	for _, s := range r.DamagedLeases {
		say("lease of %s cannot be read: sovereign lease reset %s", s, s)
	}
	for _, ref := range r.Parked {
		say("parked %s, token %s: it was claimed, and how that ended is not known", ref.ID, ref.Token)
	}
	for _, ref := range r.Swept {
		say("swept %s, token %s: its claim had expired", ref.ID, ref.Token)
	}
	for _, ref := range r.Recovered {
		say("recovered %s, token %s: worker_lost", ref.ID, ref.Token)
	}
	for _, s := range r.Released {
		say("released the lease of %s", s)
	}
	for _, path := range r.Workspaces {
		say("reclaimed %s", printable(path))
	}
	if r.empty() {
		say("nothing to recover")
	}
	return nil
}
