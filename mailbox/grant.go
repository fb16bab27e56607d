package mailbox

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A grantedClaim is what claimTx wrote, to be folded into the index.
type grantedClaim struct {
	rec   *record
	d     Delivery
	ended *ending // of the expired attempt that it took over, nil if none
	again bool    // the process held it already
}

// granted folds committed claims into the index.
func (b *Box) granted(claims []grantedClaim) []Delivery {
	out := make([]Delivery, 0, len(claims))
	for _, g := range claims {
		if g.ended != nil {
			b.index.ended(g.ended.ref)
			b.tallies.of(g.ended.to).end(g.ended.how)
			b.journal.appended()
			b.tellLost(g.ended.holder, g.ended.ref, "expired")
		}
		if !g.again {
			b.index.granted(g.rec.id, g.rec.hold())
			b.tallies.of(g.rec.to).claims.Add(1)
		}
		g.d.Again = g.again
		out = append(out, g.d)
	}
	return out
}

// claimTx is the compare-and-set of a claim (P3.2): the message's record alone
// decides. The lease of h has been checked in the same transaction.
func (b *Box) claimTx(tx store.Tx, id ID, q ask, m moment) (grantedClaim, error) {
	h := q.holder
	var out grantedClaim
	rec, err := b.mustGet(tx, id)
	if err != nil {
		return out, err
	}
	if rec.to != h.Slot.Actor {
		return out, refusal.New(refusal.NotAddressee, fmt.Sprintf("message %s is not for %s", id, h.Slot.Actor),
			"it is addressed to "+rec.to, "")
	}
	// What the process holds it gets back whatever has become of its actor (P3.3).
	heldBack := func() error {
		if actor := b.policy(rec.to); actor.Removed || actor.Paused {
			return notClaimable(rec, "deliveries to "+rec.to+" are held back").Later()
		}
		return nil
	}
	switch rec.state {
	case New:
		if err := heldBack(); err != nil {
			return out, err
		}
		if err := b.waitsTx(tx, rec, m.at); err != nil {
			return out, err
		}
	case Claimed:
		leased, err := b.leases.CurrentTx(tx, rec.holder().Slot, rec.claim.lease)
		if err != nil && !refusal.Has(err, refusal.LeaseCorrupt) {
			return out, err
		}
		expired := b.expired(rec, m.now)
		live := leased && !expired
		if live && rec.claim.process == h.Process && rec.claim.lease == h.Token && q.byID {
			out.rec, out.again = rec, true
			out.d, err = b.deliveryTx(tx, rec, m.now)
			return out, err
		}
		if !q.byID { // an old index entry; an expired claim is the sweep's
			return out, notClaimable(rec, fmt.Sprintf("attempt %d holds it", rec.attempt)).Later()
		}
		// The message of a claim that is auto, overdue or without progress is handed
		// out only once its process has been ended and has left (P4.5); so is one whose
		// lease alone is gone, and any of a process that does not die.
		if live || !expired || b.index.withholds(rec.claim.process) || rec.claim.endsWithItsProcess(m.now) && (!leased || b.leases.Kept(rec.holder().Slot, rec.claim.lease)) {
			return out, notClaimable(rec, fmt.Sprintf("attempt %d holds it", rec.attempt)).Later()
		}
		if err := heldBack(); err != nil {
			return out, err
		}
		ended, err := b.endTx(tx, rec, Outcome{Verdict: Unreported, Category: CategoryClaimExpired, ExitCode: -1, expired: true,
			Reason: "the claim had expired when the message was claimed again"}, 0, m)
		if err != nil {
			return out, err
		}
		if ended.state != New {
			// Its last attempt: what ended here is committed by the sweep.
			return out, notClaimable(rec, "its last attempt has expired")
		}
		if ended.more != 0 {
			return out, notClaimable(rec, "its expired attempt is being cleared").Later()
		}
		if err := b.waitsTx(tx, rec, time.Time{}); err != nil {
			return out, err // another one of its group is first
		}
		out.ended = &ended
	default:
		return out, notClaimable(rec, "it is "+rec.state.String())
	}
	// Read first: nothing may be written for a message that cannot be delivered.
	c, err := decodeContent(rec.id, tx.Get(rec.stock.idKey(spaceContent, rec.id)))
	if err != nil {
		return out, err
	}
	if !q.room.take(Delivery{ID: rec.id, From: c.from, Subject: c.subject, Headers: c.headers, Body: c.body}) {
		return out, errNoRoom
	}
	b.grantTx(tx, rec, h, q.request, false, m)
	out.rec = rec
	out.d = b.delivery(rec, c, m.now)
	return out, nil
}

// waitsTx says why rec, which is NEW, cannot be claimed at that time, nil where it
// can. A zero time leaves out what has to do with time.
func (b *Box) waitsTx(r store.Reader, rec *record, at time.Time) error {
	switch by := b.blockedTx(r, rec); {
	case !at.IsZero() && rec.dueAt.After(at):
		return notClaimable(rec, "it is not due before "+rec.dueAt.Format(time.RFC3339)).Later()
	case rec.lapsed(at):
		return notClaimable(rec, "its time to live was over at "+rec.lapsesAt.Format(time.RFC3339))
	case by != 0:
		return notClaimable(rec, "message "+by.String()+" of its group "+quote(rec.group)+" comes first").Later()
	}
	return nil
}

// grantTx writes the claim of rec, which is NEW: token, expiry and state in one
// record, in the transaction that grants (P3.11). The claim of a task is always
// kept, and does not end with the actor's timeout: there the supervisor
// observes which comes first, the exit or the timeout.
func (b *Box) grantTx(tx store.Tx, rec *record, h fence.Holder, request string, task bool, m moment) {
	actor := b.policy(rec.to)
	token := fence.Token(tx.Mint("message:" + rec.id.String()))
	if token <= rec.last {
		panic(fmt.Sprintf("mailbox: token of %s went back: %d to %d", rec.id, rec.last, token))
	}
	rec.attempt++
	rec.last = token
	rec.dueAt = time.Time{}
	rec.claim = claim{slot: h.Slot.Number, process: h.Process, lease: h.Token, token: token, startedAt: m.at,
		expiresAt: m.now + fence.Instant(actor.claimTTL()), auto: actor.Auto || task, request: request}
	rec.claim.staleAt = b.staleAt(rec.to, m.now)
	rec.claim.task = task
	if !task && actor.Timeout > 0 {
		rec.claim.limitAt = m.now + fence.Instant(actor.Timeout)
		rec.claim.expiresAt = min(rec.claim.expiresAt, rec.claim.limitAt)
	}
	if !rec.lapsesAt.IsZero() {
		tx.Delete(lapseKey(rec.lapsesAt, rec.id))
	}
	if rec.group != "" {
		tx.Put(groupKey(rec.to, rec.group), binary.BigEndian.AppendUint64(nil, uint64(rec.id)))
	}
	tx.Add(rec.stock.countKey(rec.to, rec.state), -1)
	rec.state = Claimed
	tx.Put(rec.key(), rec.encode())
	b.markClaimTx(tx, rec)
	tx.Add(rec.stock.countKey(rec.to, Claimed), 1)
}

func (b *Box) deliveryTx(r store.Reader, rec *record, now fence.Instant) (Delivery, error) {
	c, err := decodeContent(rec.id, r.Get(idKey(spaceContent, rec.id)))
	if err != nil {
		return Delivery{}, err
	}
	return b.delivery(rec, c, now), nil
}

func (b *Box) delivery(rec *record, c *content, now fence.Instant) Delivery {
	left := b.remaining(rec, now)
	return Delivery{ID: rec.id, From: c.from, Subject: c.subject, Headers: c.headers, Body: c.body,
		Attempt: rec.attempt, Token: rec.claim.token, ExpiresAt: b.wall().Add(left).UTC(), Remaining: left}
}
