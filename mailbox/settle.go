package mailbox

import (
	"context"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Settle ends the holder's claim with o and returns once that is durable.
//
// The request is judged in the order of P3: the lease of h (actor_lease_lost,
// lease_expired), the message (message_missing), its recipient (not_addressee),
// the token. A token with which the same process made the same settle before
// succeeds with Repeated and writes nothing; with another verb it is refused,
// already_settled (P3.6). An expired claim is refused, lease_expired, any other
// token fencing_token_stale: both are final.
//
// sends are staged first, all or none, and become visible with a completion;
// where one is refused so is the settle, and the claim goes on.
func (b *Box) Settle(ctx context.Context, h fence.Holder, ref Ref, o Outcome, sends []Outgoing) (Settled, error) {
	o.ByWorker = true
	if len(sends) > 0 {
		// A repeat on another connection must not stage the same sends beside us.
		defer b.busy.lock(ref)()
	}
	placed, err := b.stageAll(ctx, h, ref, sends)
	if err != nil {
		return Settled{}, b.refuse(h, ref, o.Verdict.verb(), err)
	}
	s := &settling{m: b.moment()}
	err = b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		s.end, s.repeated = ending{}, nil
		rec, err := b.currentTx(tx, h, ref, b.leases.Now())
		if err != nil {
			s.repeated, err = b.repeatTx(tx, h, ref, o, err)
			return err
		}
		s.end, err = b.endTx(tx, rec, o, maxInline, s.m)
		return err
	})
	if err != nil {
		// The claim may go on and be settled later: without these sends.
		b.withdraw(ctx, ref, placed)
		return Settled{}, b.refuse(h, ref, o.Verdict.verb(), err)
	}
	if s.repeated != nil {
		return *s.repeated, nil
	}
	return b.settled(ctx, s.end)
}

// settling is a settle on its way through its transaction: what the run that counts,
// the last one, has made of it.
type settling struct {
	m        moment
	end      ending
	repeated *Settled // nil: it is none
}

// settled folds a committed ending and finishes what it left pending.
func (b *Box) settled(ctx context.Context, end ending) (Settled, error) {
	b.fold(end)
	if end.more != 0 {
		// The end itself is durable: a context that is over must not hide it.
		visible, err := b.finishNow(context.WithoutCancel(ctx), end.ref, end.more)
		end.settled.Visible = append(end.settled.Visible, visible...)
		return end.settled, err
	}
	return end.settled, nil
}

// finishNow is finish right after the write that made it pending. That one
// stands, and its answer is not held back by a disk that has filled up since: Run
// does the rest.
func (b *Box) finishNow(ctx context.Context, ref Ref, what pending) (visible []ID, err error) {
	visible, err = b.finish(ctx, ref, what)
	if err != nil && !refusal.Has(err, refusal.OutcomeUnknown) {
		b.log.Error("not finished yet", "msg", ref.ID.String(), "err", err)
		b.rest.add(leftover{ref, what})
		err = nil
	}
	return visible, err
}

// stageAll stages the sends of a completion, all or none.
func (b *Box) stageAll(ctx context.Context, h fence.Holder, ref Ref, sends []Outgoing) (placed []ID, err error) {
	for i, m := range sends {
		sent, err := b.stage(ctx, h, ref, m)
		switch {
		case refusal.Has(err, refusal.AlreadySettled):
			// The answer to this very request may have been lost: the settle itself
			// decides.
			return placed, nil
		case err != nil:
			b.withdraw(ctx, ref, placed)
			return nil, inSend(err, i, sends)
		case !sent.Duplicate:
			placed = append(placed, sent.ID)
		}
	}
	return placed, nil
}

// inSend says in err which of the sends of a completion was refused, where it was that, and
// not the completion or the store.
func inSend(err error, i int, sends []Outgoing) error {
	said := *refusal.Of(err)
	switch said.Category {
	case refusal.BadRequest, refusal.UnknownActor, refusal.InboxFull, refusal.MessageTooLarge, refusal.DuplicateKey:
		said.Message = fmt.Sprintf("send %d of %d, to %s: %s", i+1, len(sends), quote(sends[i].To), said.Message)
		return said.Because(err)
	}
	return err
}

// withdraw removes what stageAll placed. Where that fails the sends stay
// invisible unless the claim completes.
func (b *Box) withdraw(ctx context.Context, ref Ref, placed []ID) {
	if err := b.unstage(context.WithoutCancel(ctx), ref, placed); err != nil {
		b.log.Error("staged sends of a refused completion were not removed", "msg", ref.ID.String(), "err", err)
	}
}

// Check returns nil while the holder's claim is current and unexpired, and the
// refusal that a settle would get otherwise. It is for use right before a step
// that cannot be taken back.
func (b *Box) Check(ctx context.Context, h fence.Holder, ref Ref) error {
	return b.store.View(ctx, func(r store.Reader) error {
		_, err := b.currentTx(r, h, ref, b.leases.Now())
		return err
	})
}

// Renew moves the expiry of a claim to the actor's claim ttl from now, never to
// earlier than it was and never beyond the actor's timeout, and stores progress
// where it is given. An auto claim needs no renewal: only progress is
// written. Progress that changes moves the end of the actor's progress timeout.
// Refusals as for Settle.
func (b *Box) Renew(ctx context.Context, h fence.Holder, ref Ref, progress *string) (expiresAt time.Time, remaining time.Duration, err error) {
	var rec *record
	now := b.leases.Now()
	err = b.store.Update(store.Essential(ctx), func(tx store.Tx) (err error) {
		now = b.leases.Now()
		if rec, err = b.currentTx(tx, h, ref, now); err != nil {
			return err
		}
		old := rec.claim
		if progress != nil {
			rec.claim.progress = protocol.Cut(printable(*progress), maxReason)
			if rec.claim.progress != old.progress {
				rec.claim.staleAt = b.staleAt(rec.to, now)
			}
		}
		if !rec.claim.auto {
			until := now + fence.Instant(b.policy(rec.to).claimTTL())
			if rec.claim.limitAt != 0 {
				until = min(until, rec.claim.limitAt)
			}
			rec.claim.expiresAt = max(rec.claim.expiresAt, until)
		}
		if rec.claim != old {
			tx.Put(rec.key(), rec.encode())
		}
		return nil
	})
	if err != nil {
		return time.Time{}, 0, b.refuse(h, ref, "renew", err)
	}
	b.index.renewed(ref, rec.claim.expiresAt, rec.claim.staleAt)
	remaining = b.remaining(rec, now)
	return b.wall().Add(remaining).UTC(), remaining, nil
}

// staleAt is when the progress of a claim must have changed that was granted, or
// whose progress changed, at now; 0 never.
func (b *Box) staleAt(actor string, now fence.Instant) fence.Instant {
	if limit := b.policy(actor).Progress; limit > 0 {
		return now + fence.Instant(limit)
	}
	return 0
}

// remaining is the time that is left to a claim as its worker should see it.
func (b *Box) remaining(rec *record, now fence.Instant) time.Duration {
	until := rec.claim.expiresAt
	if rec.claim.auto && b.leases.Kept(rec.holder().Slot, rec.claim.lease) {
		until = now + fence.Instant(b.policy(rec.to).claimTTL())
		if rec.claim.limitAt != 0 {
			until = rec.claim.limitAt
		}
	}
	return max(0, time.Duration(until-now))
}

// currentTx returns the record of the claim that ref names if h may act under
// it: the one place where a worker's fence is checked, in the order of P3.
func (b *Box) currentTx(r store.Reader, h fence.Holder, ref Ref, now fence.Instant) (*record, error) {
	if _, err := b.leases.CheckTx(r, h, now); err != nil {
		return nil, err
	}
	rec, err := b.mustGet(r, ref.ID)
	if err != nil {
		return nil, err
	}
	if rec.to != h.Slot.Actor {
		return nil, refusal.New(refusal.NotAddressee, fmt.Sprintf("message %s is not for %s", ref.ID, h.Slot.Actor),
			"it is addressed to "+rec.to, "")
	}
	current := rec.state == Claimed && ref.Token != 0 && rec.claim.token == ref.Token &&
		rec.claim.process == h.Process && rec.claim.lease == h.Token
	if current && !b.expired(rec, now) {
		return rec, nil
	}
	return nil, b.staleTx(r, h, ref, rec, current)
}

// staleTx says why ref is not h's current claim.
func (b *Box) staleTx(r store.Reader, h fence.Holder, ref Ref, rec *record, expired bool) error {
	stop := "stop working on this message: nothing of this attempt counts any more"
	receipt, found, err := b.receiptTx(r, ref)
	if err != nil {
		return err
	}
	mine := found && receipt.Process == h.Process
	switch {
	case mine && receipt.ByWorker:
		return refusal.New(refusal.AlreadySettled, fmt.Sprintf("attempt %d of message %s has been settled", receipt.Attempt, ref.ID),
			fmt.Sprintf("it was %s", receipt.Status), "take the next message")
	case expired, mine && rec.last == ref.Token && receipt.expired:
		return refusal.New(refusal.LeaseExpired, fmt.Sprintf("the claim on message %s has expired", ref.ID),
			"it was not renewed in time, or used up its actor's timeout", stop)
	}
	why := fmt.Sprintf("token %d was given, and the message is %s", ref.Token, rec.state)
	switch {
	case ref.Token == 0:
		why = "no claim token was given"
	case mine:
		why = fmt.Sprintf("that attempt was ended as %s", receipt.Category)
	case rec.state == Claimed:
		why = fmt.Sprintf("token %d was given, %d is current", ref.Token, rec.claim.token)
		if rec.claim.token == ref.Token {
			why = "that token belongs to another process"
		}
	}
	return refusal.New(refusal.FencingTokenStale, fmt.Sprintf("this token does not hold message %s", ref.ID), why, stop)
}

// receiptTx finds the receipt of a token of a message.
func (b *Box) receiptTx(r store.Reader, ref Ref) (out Receipt, found bool, err error) {
	prefix := idKey(spaceReceipt, ref.ID)
	r.ScanBack(prefix, after(prefix), func(k, v []byte) bool {
		id, attempt, ok := parseReceiptKey(k)
		if !ok {
			return true
		}
		var rc Receipt
		if rc, err = decodeReceipt(id, attempt, v); err != nil {
			return false
		}
		if rc.Token == ref.Token {
			out, found = rc, true
			return false
		}
		return true
	})
	return out, found, err
}

// repeatTx answers a settle that was refused with why as already_settled: where
// it repeats the first settle, with what that one answered (P3.6).
func (b *Box) repeatTx(r store.Reader, h fence.Holder, ref Ref, o Outcome, why error) (*Settled, error) {
	if !refusal.Has(why, refusal.AlreadySettled) {
		return nil, why
	}
	receipt, _, err := b.receiptTx(r, ref)
	if err != nil {
		return nil, err
	}
	if receipt.verb != verbStatus(o.Verdict) {
		return nil, why
	}
	return b.ownSettleTx(r, ref)
}

// ownSettleTx is what a settle that was made before under ref answered.
func (b *Box) ownSettleTx(r store.Reader, ref Ref) (*Settled, error) {
	rec, err := b.mustGet(r, ref.ID)
	if err != nil {
		return nil, err
	}
	out := &Settled{State: rec.state, Attempts: rec.attempts, Repeated: true}
	if rec.last != ref.Token || rec.state == Claimed {
		out.State = New // it went back, and has moved on since
	}
	return out, nil
}

// verbStatus is the status that a worker's verb leaves on its receipt.
func verbStatus(v Verdict) Status {
	switch v {
	case Complete:
		return Completed
	case GiveBack, Defer, Interrupt:
		return Released
	default:
		return Failed
	}
}
