package mailbox

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/store"
)

// NextExpiry returns the earliest instant at which a claim can expire or use up
// its actor's timeout; ok is false where there is none. changed is closed when
// an earlier one comes up.
func (b *Box) NextExpiry() (at fence.Instant, ok bool, changed <-chan struct{}) {
	return b.index.nextExpiry()
}

// SweepExpired ends the claims that have expired by now, as charged attempts
// (P3.9), tells their workers, and returns them. Each is a transaction of its
// own, and a compare-and-set: what was renewed, settled or claimed anew since it
// was listed is left alone. Claims that have been renewed until their actor's timeout
// was over, and claims without progress, are not swept: OnOverdue is told, so that their
// process is ended first.
func (b *Box) SweepExpired(ctx context.Context) ([]Ref, error) {
	manual, overdue := b.index.expired(b.leases.Now())
	for _, c := range overdue {
		b.tellOverdue(c)
	}
	done := make([]bool, len(manual))
	var all errgroup.Group
	all.SetLimit(sweepers)
	for i, c := range manual {
		all.Go(func() (err error) {
			if done[i], err = b.Sweep(ctx, c.ref); err != nil {
				b.index.expireAgain(c.ref)
			}
			return err
		})
	}
	err := all.Wait()
	var swept []Ref
	for i, c := range manual {
		if done[i] {
			swept = append(swept, c.ref)
			b.tellLost(c.holder, c.ref, "expired")
		}
	}
	return swept, err
}

// sweepers bounds the sweeps that are under way at once: together they share
// commits.
const sweepers = 64

// Sweep ends one claim if it has expired by now, and reports whether it did.
func (b *Box) Sweep(ctx context.Context, ref Ref) (bool, error) {
	m := b.moment()
	var end *ending
	var left *hold // the claim, where it goes on
	err := b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		end, left = nil, nil
		rec, err := b.get(tx, ref.ID)
		if err != nil {
			b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
			return nil
		}
		// The compare of the compare-and-set: state, token and expiry.
		if rec == nil || rec.state != Claimed || rec.claim.token != ref.Token {
			return nil
		}
		if !b.expired(rec, b.leases.Now()) {
			left = rec.hold()
			return nil
		}
		e, err := b.endTx(tx, rec, Outcome{Verdict: Unreported, Category: CategoryClaimExpired, ExitCode: -1, expired: true,
			Reason: "the claim was not renewed in time"}, 0, m)
		end = &e
		return err
	})
	if err != nil {
		return false, err
	}
	switch {
	case left != nil: // renewed, and the index does not know yet
		b.index.renewed(ref, left.expiresAt, left.staleAt)
		b.index.expireAgain(ref)
		return false, nil
	case end == nil: // ended
		b.index.ended(ref)
		return false, nil
	}
	_, err = b.settled(ctx, *end)
	return err == nil, err
}
