package mailbox

import (
	"context"
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

// Claim claims messages of the holder's actor and returns them with their tokens, once
// no end of this process can undo that. It is durable before anything that rests on it,
// and 10 ms later at most; until then a crash of the machine makes the message NEW again,
// and no process has a part in it any more (P3.12). A claim that would not be NEW again
// when its process is lost, by its actor's policy or since it is the last attempt, is
// durable on return.
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
		if err := b.checkLease(ctx, h); err != nil || q.Wait == 0 {
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
		if len(out) > 0 {
			idle = nil // who has something does not wait for more
		}
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
		id, turn, again, unread := b.index.take(actor, wait && len(out) == 0)
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
		case id != 0:
			if out = append(out, id); len(out) == want || turn { // whether it is handed out decides who is next
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
		if b.mayBeAsynchronous(h.Slot.Actor, g.granted) {
			tx.Asynchronous()
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

// mayBeAsynchronous reports whether the claims may be answered before they are durable (P3.12):
// where one that is lost makes its message NEW again, in which state a crash of the machine
// leaves it as well. A last attempt is none of those (P3.9), nor what is to be parked.
func (b *Box) mayBeAsynchronous(actor string, claims []grantedClaim) bool {
	policy := b.policy(actor)
	return !slices.ContainsFunc(claims, func(g grantedClaim) bool {
		return g.ended != nil || follow(Outcome{Verdict: Unreported}, g.rec.attempts, policy, 0).state != New
	})
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
	b.index.untake(actor, ids)
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
