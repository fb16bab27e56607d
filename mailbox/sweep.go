package mailbox

import (
	"context"

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
// was listed is left alone. Auto claims that have used up their actor's timeout
// are not swept: OnOverdue is told, so that their process is ended first.
func (b *Box) SweepExpired(ctx context.Context) ([]Ref, error) {
	manual, overdue := b.index.expired(b.leases.Now())
	for _, c := range overdue {
		b.tellOverdue(c)
	}
	var swept []Ref
	for i, c := range manual {
		done, err := b.Sweep(ctx, c.ref)
		if err != nil {
			for _, left := range manual[i:] {
				b.index.expireAgain(left.ref)
			}
			return swept, err
		}
		if done {
			swept = append(swept, c.ref)
			b.tellLost(c.holder, c.ref, "expired")
		}
	}
	return swept, nil
}

// Sweep ends one claim if it has expired by now, and reports whether it did.
func (b *Box) Sweep(ctx context.Context, ref Ref) (bool, error) {
	at, random := b.wall().UTC(), b.random()
	var end *ending
	err := b.store.Update(ctx, func(tx store.Tx) error {
		end = nil
		rec, err := b.get(tx, ref.ID)
		if err != nil {
			b.log.Error("unreadable message left alone", "msg", ref.ID.String(), "err", err)
			return nil
		}
		// The compare of the compare-and-set: state, token and expiry.
		if rec == nil || rec.state != Claimed || rec.claim.token != ref.Token || !b.expired(rec, b.leases.Now()) {
			return nil
		}
		e, err := b.endTx(tx, rec, Outcome{Verdict: Unreported, Category: CategoryClaimExpired, ExitCode: -1,
			Reason: "the claim was not renewed in time"}, 0, at, random)
		end = &e
		return err
	})
	if err != nil {
		return false, err
	}
	if end == nil {
		b.index.expireAgain(ref)
		return false, nil
	}
	_, err = b.settled(ctx, *end)
	return err == nil, err
}
