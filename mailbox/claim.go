package mailbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A ClaimRequest says what a worker wants to work on.
type ClaimRequest struct {
	Max     int           // at most so many; 0 = 1
	Wait    time.Duration // for the first one; 0 = do not wait, < 0 = until the context ends
	ID      ID            // that message, 0 = any
	Request string        // a name of the caller's: repeated by the same process, it returns the same claims
	Room    int           // for what is returned, by Size; the first has room whatever its size; 0 = no bound
	Size    func(Delivery) int

	// Waits, where it is set, is called once when the claim is about to wait: there is
	// nothing, or one with the same Request is under way, which it waits for even where
	// Wait is 0. The wait ends with the context that it returns, rather than with the
	// claim's; its error ends the claim.
	Waits func() (context.Context, error)
}

// A room is what is left of a claim's Room. Its zero value has no end.
type room struct {
	size func(Delivery) int
	left int
	full bool // one was left out for want of it
	any  bool // something has been granted
}

// take reports whether d has room, and takes it.
func (r *room) take(d Delivery) bool {
	if r.size == nil {
		return true
	}
	n := r.size(d)
	if r.full = r.any && n > r.left; r.full {
		return false
	}
	r.any = true
	r.left -= n
	return true
}

// errNoRoom is claimTx's for a message that is left where it is.
var errNoRoom = errors.New("no room for it")

// maxRequest bounds the name of a claim request, in bytes.
const maxRequest = 256

// maxClaims bounds the claims granted by one transaction.
const maxClaims = 12

// Claim claims messages of the holder's actor and returns them once that is
// durable, with their tokens.
//
// Without ID or Request only messages that the process does not hold yet are
// claimed; none to be had is an empty answer and no error. ID asks for that
// message, also before its due time is over for a takeover of an expired claim:
// message_missing, not_addressee or message_not_claimable refuse it, and a
// message that the process holds already is returned as it is (P3.3). The
// lease of h is verified in the granting transaction (P2.1): actor_lease_lost,
// lease_expired. Load must have been called.
func (b *Box) Claim(ctx context.Context, h fence.Holder, q ClaimRequest) ([]Delivery, error) {
	if len(q.Request) > maxRequest {
		return nil, refusal.New(refusal.BadRequest, "the claim request's name is too long",
			fmt.Sprintf("it may have %d bytes", maxRequest), "")
	}
	within, begun, cancel := ctx, false, func() {}
	defer func() { cancel() }()
	// What is claimed at once needs no timer.
	wait := func() (_ context.Context, err error) {
		if begun {
			return within, nil
		}
		begun = true
		if q.Waits != nil {
			if within, err = q.Waits(); err != nil {
				return nil, err
			}
		}
		if q.Wait > 0 {
			within, cancel = context.WithTimeout(within, q.Wait)
		}
		return within, nil
	}
	if q.Request != "" {
		// Its first may wait long: a repeat waits no otherwise than a claim does.
		unlock, err := b.busy.lockWithin(requestKey{h.Process, q.Request}, wait)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		defer unlock()
		if held := b.index.heldBy(h.Process, q.Request); len(held) > 0 {
			// Those that have expired since are nobody's: a new claim must win anew.
			if out, err := b.redeliver(ctx, h, held); err != nil || len(out) > 0 {
				return out, err
			}
		}
	}
	if q.ID != 0 {
		return b.grant(ctx, ask{holder: h, request: q.Request, byID: true, room: &room{}}, []ID{q.ID})
	}
	var left room
	if q.Room > 0 && q.Size != nil {
		left = room{size: q.Size, left: q.Room}
	}
	idle := func() (context.Context, error) {
		if err := b.holds(ctx, h); err != nil || q.Wait == 0 {
			return ctx, err
		}
		return wait()
	}
	var out []Delivery
	for want := max(1, q.Max); len(out) < want && !left.full; {
		ids, err := b.ready(ctx, h.Slot.Actor, min(want-len(out), maxClaims), q.Wait != 0 && len(out) == 0, idle)
		if err != nil || len(ids) == 0 {
			if len(out) > 0 || errors.Is(err, context.DeadlineExceeded) {
				return out, nil
			}
			return out, err
		}
		got, err := b.grant(context.WithoutCancel(ctx), ask{holder: h, request: q.Request, room: &left}, ids)
		if err != nil && len(out) == 0 {
			return nil, err
		}
		out = append(out, got...)
		if err != nil {
			break
		}
		idle = nil // who has something does not wait for more
	}
	return out, nil
}

type requestKey struct {
	process fence.Process
	request string
}

// ready takes up to want ready messages of an actor out of the index. Where
// there are none it calls idle once, returns its error, and then waits for one
// within the context of idle's, if it may; else it returns nothing. The caller
// pushes back what it does not use.
func (b *Box) ready(ctx context.Context, actor string, want int, wait bool, idle func() (context.Context, error)) ([]ID, error) {
	var out []ID
	for {
		id, ok, again, unread := b.index.take(actor, wait && len(out) == 0)
		switch {
		case unread != nil && ctx.Err() != nil: // there may be many of them
			if len(out) > 0 {
				return out, nil
			}
			return nil, context.Cause(ctx)
		case unread != nil:
			if err := b.readBlock(ctx, *unread); err != nil && len(out) == 0 {
				return nil, err
			} else if err != nil {
				return out, nil
			}
			continue
		case ok:
			if out = append(out, id); len(out) == want {
				return out, nil
			}
			continue
		case len(out) > 0:
			return out, nil
		}
		if idle != nil {
			var err error
			if ctx, err = idle(); err != nil {
				if again != nil {
					b.index.leave(actor, again)
				}
				return nil, err
			}
			idle = nil
		}
		if again == nil {
			return nil, nil
		}
		select {
		case <-again:
		case <-ctx.Done():
			b.index.leave(actor, again)
			return nil, context.Cause(ctx)
		}
	}
}

// An ask is who asks for messages, and how.
type ask struct {
	holder  fence.Holder
	request string
	byID    bool // it names its message
	room    *room
}

// grant claims the messages of ids that can be claimed, in one transaction. With
// byID the refusal of the one message is returned; else what cannot be claimed
// is left out: its index entry was out of date. What there is no room for, and all
// behind it, goes back to wait, and nothing is on record of it.
func (b *Box) grant(ctx context.Context, q ask, ids []ID) ([]Delivery, error) {
	h := q.holder
	g := &granting{m: b.moment(), before: *q.room}
	g.granted = g.first[:0]
	b.grants.enter(h.Process)
	defer b.grants.leave(h.Process)
	err := b.store.Update(ctx, func(tx store.Tx) error {
		g.granted, g.corrupt = g.granted[:0], g.corrupt[:0]
		*q.room = g.before
		g.m.now = b.leases.Now()
		if _, err := b.leases.CheckTx(tx, h, g.m.now); err != nil {
			return err
		}
		for _, id := range ids {
			one, err := b.claimTx(tx, id, q, g.m)
			switch {
			case errors.Is(err, errNoRoom):
				return nil
			case err == nil:
				g.granted = append(g.granted, one)
			case q.byID:
				return err
			case refusal.Has(err, refusal.StoreCorrupt):
				g.corrupt = append(g.corrupt, id)
				b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
			}
		}
		return nil
	})
	if err != nil {
		if !q.byID {
			b.giveBack(ctx, h.Slot.Actor, ids)
		}
		return nil, err
	}
	if !q.byID && len(g.granted) < len(ids) {
		// An entry that was out of date is gone; a message that waits after all
		// (the wall clock went back, its actor was paused) must not be.
		taken := g.corrupt
		for _, one := range g.granted {
			taken = append(taken, one.rec.id)
		}
		b.giveBack(ctx, h.Slot.Actor, slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return slices.Contains(taken, id) }))
	}
	return b.granted(g.granted), nil
}

// granting is a grant on its way through its transaction: what the run that counts,
// the last one, has made of it.
type granting struct {
	m       moment
	before  room // what the caller's was
	granted []grantedClaim
	first   [1]grantedClaim // what granted begins in: mostly it is one
	corrupt []ID
}

// giveBack puts messages taken by ready back into the index.
func (b *Box) giveBack(ctx context.Context, actor string, ids []ID) {
	now := b.wall()
	_ = b.store.View(context.WithoutCancel(ctx), func(r store.Reader) error {
		for _, id := range ids {
			// One whose time to live is over ends by itself; one that its group holds up
			// is pushed by whoever ends what it waits for.
			if rec, err := b.get(r, id); err == nil && rec != nil && rec.state == New && !rec.lapsed(now) && b.blockedTx(r, rec) == 0 {
				b.index.push(actor, id, rec.priority, rec.dueAt, now)
			}
		}
		return nil
	})
}

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
			b.index.unhold(g.ended.ref)
			b.tallies.of(g.ended.to).end(g.ended.how)
			b.journal.appended()
			b.tellLost(g.ended.holder, g.ended.ref, "expired")
		}
		if !g.again {
			b.index.hold(g.rec.id, g.rec.hold())
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
	actor := b.policy(rec.to)
	if actor.Removed || actor.Paused && !q.byID {
		return out, notClaimable(rec, "deliveries to "+rec.to+" are held back").Later()
	}
	switch rec.state {
	case New:
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
	c, err := decodeContent(rec.id, tx.Get(idKey(spaceContent, rec.id)))
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
	tx.Add(countKey(rec.to, rec.state), -1)
	rec.state = Claimed
	tx.Put(rec.key(), rec.encode())
	b.markClaimTx(tx, rec)
	tx.Add(countKey(rec.to, Claimed), 1)
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

// redeliver returns claims that the process holds, as they are.
func (b *Box) redeliver(ctx context.Context, h fence.Holder, held []Ref) ([]Delivery, error) {
	var out []Delivery
	err := b.store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		now := b.leases.Now()
		if _, err := b.leases.CheckTx(r, h, now); err != nil {
			return err
		}
		for _, ref := range held {
			rec, err := b.currentTx(r, h, ref, now)
			if err != nil {
				continue // ended since
			}
			d, err := b.deliveryTx(r, rec, now)
			if err != nil {
				return err
			}
			d.Again = true
			out = append(out, d)
		}
		return nil
	})
	return out, err
}

func notClaimable(rec *record, why string) *refusal.Error {
	return refusal.New(refusal.MessageNotClaimable, "message "+rec.id.String()+" cannot be claimed", why,
		"see `sovereign inbox show "+rec.id.String()+"`")
}
