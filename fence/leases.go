package fence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Leases grants, renews and ends leases. Only the supervisor asks it to (P1).
// The Tx methods join the caller's transaction; now is the lease clock's.
type Leases struct {
	store store.Store
	now   func() Instant
	need  func() (done func()) // nil: the clock needs no looking after

	mu       sync.RWMutex   // guards all below
	kept     map[Slot]Token // leases of living children
	starting map[Slot]int   // acquisitions whose process is about to be kept
	read     map[Slot]read  // what was decoded last, for who reads the same again
}

// read is a record and what it says.
type read struct {
	record [leaseSize]byte
	lease  Lease
}

// readMost bounds Leases.read.
const readMost = 4096

// New returns the leases of a store; now is the store's lease clock. Nothing is
// kept yet.
func New(st store.Store, now func() Instant) *Leases {
	return &Leases{store: st, now: now, kept: map[Slot]Token{}, starting: map[Slot]int{}, read: map[Slot]read{}}
}

// NewOn is New on the clock of a running supervisor, which leaves out the time
// during which it did not run.
func NewOn(st store.Store, clock *Clock) *Leases {
	l := New(st, clock.Now)
	l.need = clock.Need
	return l
}

// Now is the lease clock.
func (l *Leases) Now() Instant { return l.now() }

// Need says that somebody has a deadline on the lease clock until done is
// called (Clock.Need).
func (l *Leases) Need() (done func()) {
	if l.need == nil {
		return func() {}
	}
	return l.need()
}

// Keep says that the process under token lives and is looked after: from now on
// its lease does not expire, and nothing need be written to renew it. The
// store's lock proves that the one who keeps is the only one; after its death
// a restart recovers every lease anyway. Keeping ends with Drop, or when the
// lease is released or taken over.
func (l *Leases) Keep(slot Slot, token Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[slot] = token
}

// Starting says that a lease of slot is about to be acquired and kept, so that
// Reset does not take it away in between. The caller calls done after Keep, or
// when nothing was acquired.
func (l *Leases) Starting(slot Slot) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting[slot]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.starting[slot]--; l.starting[slot] == 0 {
			delete(l.starting, slot)
		}
	}
}

// Drop ends Keep: from now on the expiry on record counts. A token that is not
// the kept one changes nothing.
func (l *Leases) Drop(slot Slot, token Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[slot] == token {
		delete(l.kept, slot)
	}
}

func (l *Leases) keeps(slot Slot, token Token) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.kept[slot] == token && token != 0
}

// expired is the only place that compares a lease with the clock. A lease is
// valid before its expiry, not at it.
func (l *Leases) expired(lease Lease, now Instant) bool {
	return now >= lease.ExpiresAt && !l.keeps(lease.Slot, lease.Token)
}

// Remaining is the time that is left to lease: its TTL while it is kept, 0 when
// it has expired.
func (l *Leases) Remaining(lease Lease, now Instant) time.Duration {
	if l.keeps(lease.Slot, lease.Token) {
		return time.Duration(lease.ExpiresAt - lease.RenewedAt)
	}
	return max(0, time.Duration(lease.ExpiresAt-now))
}

// Acquire grants the slot to process for ttl and returns once that is durable.
//
// Where the process holds the slot already, unexpired, it is renewed with the
// same token (P1.8). Another process's unexpired lease refuses it,
// actor_lease_held (P1.3): wait until it ends. An expired one is taken over
// under a strictly greater token (P1.6). A damaged record refuses it,
// lease_corrupt (P1.9).
func (l *Leases) Acquire(ctx context.Context, slot Slot, process Process, ttl time.Duration) (Lease, error) {
	var out Lease
	err := l.store.Update(ctx, func(tx store.Tx) (err error) {
		out, err = l.AcquireTx(tx, slot, process, ttl, l.now())
		return err
	})
	if err != nil {
		return Lease{}, err
	}
	return out, nil
}

// AcquireTx is Acquire within tx; the token counts once tx is committed.
func (l *Leases) AcquireTx(tx store.Tx, slot Slot, process Process, ttl time.Duration, now Instant) (Lease, error) {
	if _, err := process.bytes(); err != nil {
		return Lease{}, err
	}
	if !slot.valid() {
		return Lease{}, refusal.New(refusal.BadRequest, fmt.Sprintf("%q is no slot", slot.String()),
			fmt.Sprintf("a slot is an actor and a number from 1 to %d", maxSlot), "")
	}
	if ttl <= 0 {
		return Lease{}, refusal.New(refusal.BadRequest, "a lease needs a time to live", "its ttl is not positive", "set lease.ttl")
	}
	held, found, err := l.get(tx, slot)
	if err != nil {
		return Lease{}, err
	}
	switch {
	case found && held.Process == process && !l.expired(held, now):
		return l.extend(tx, held, ttl, now), nil
	case found && !l.expired(held, now):
		return Lease{}, refusal.New(refusal.ActorLeaseHeld, fmt.Sprintf("the lease of %s is held", slot),
			fmt.Sprintf("%s holds it for another %s", held.Process.Short(), l.Remaining(held, now).Round(time.Millisecond)),
			"wait until it ends, or stop its holder").Later()
	}
	lease := Lease{Slot: slot, Process: process, Token: Token(tx.Mint(slot.resource())),
		AcquiredAt: now, RenewedAt: now, ExpiresAt: now + Instant(ttl)}
	if found && lease.Token <= held.Token {
		panic(fmt.Sprintf("fence: token of %s went back: %d to %d", slot, held.Token, lease.Token))
	}
	tx.Put(slot.key(), lease.encode())
	return lease, nil
}

// Renew moves the expiry of the holder's lease to ttl from now, never to
// earlier than it was, and keeps the token (P1.4). Another identity or token
// is refused, actor_lease_lost (P1.5); an expired lease, lease_expired (P1.10).
func (l *Leases) Renew(ctx context.Context, h Holder, ttl time.Duration) (Lease, error) {
	var out Lease
	err := l.store.Update(ctx, func(tx store.Tx) error {
		now := l.now()
		held, err := l.CheckTx(tx, h, now)
		if err != nil {
			return err
		}
		out = l.extend(tx, held, ttl, now)
		return nil
	})
	if err != nil {
		return Lease{}, err
	}
	return out, nil
}

func (l *Leases) extend(tx store.Tx, held Lease, ttl time.Duration, now Instant) Lease {
	held.RenewedAt = max(held.RenewedAt, now)
	held.ExpiresAt = max(held.ExpiresAt, now+Instant(ttl))
	tx.Put(held.Slot.key(), held.encode())
	return held
}

// Release ends the holder's lease, expired or not. Another identity or token
// changes nothing and is refused, actor_lease_lost (P1.7). The counter that the
// tokens come from outlives the lease.
func (l *Leases) Release(ctx context.Context, h Holder) error {
	err := l.store.Update(store.Essential(ctx), func(tx store.Tx) error { return l.ReleaseTx(tx, h) })
	if err == nil {
		l.Drop(h.Slot, h.Token)
	}
	return err
}

// ReleaseTx is Release within tx. The caller ends Keep once tx is committed.
func (l *Leases) ReleaseTx(tx store.Tx, h Holder) error {
	held, found, err := l.get(tx, h.Slot)
	if err != nil {
		return err
	}
	if !found || held.Process != h.Process || held.Token != h.Token {
		return lost(h, held, found)
	}
	tx.Delete(h.Slot.key())
	return nil
}

// CheckTx returns the lease of h if it is its slot's current lease and has not
// expired. Otherwise it refuses: actor_lease_lost, lease_expired, or
// lease_corrupt; the one refused stops acting and never retries with this
// token. It reads within r, so that a write in the same transaction is
// refused or committed together with the check.
func (l *Leases) CheckTx(r store.Reader, h Holder, now Instant) (Lease, error) {
	held, found, err := l.get(r, h.Slot)
	if err != nil {
		return Lease{}, err
	}
	if !found || h.Token == 0 || held.Process != h.Process || held.Token != h.Token {
		return Lease{}, lost(h, held, found)
	}
	if l.expired(held, now) {
		return Lease{}, refusal.New(refusal.LeaseExpired, fmt.Sprintf("the lease of %s has expired", h.Slot),
			fmt.Sprintf("it ran out %s ago", time.Duration(now-held.ExpiresAt).Round(time.Millisecond)),
			"stop: nothing that this process does counts any more")
	}
	return held, nil
}

// CurrentTx reports whether token is the token of slot's current lease, expired
// or not.
func (l *Leases) CurrentTx(r store.Reader, slot Slot, token Token) (bool, error) {
	held, found, err := l.get(r, slot)
	return found && held.Token == token, err
}

// get returns the lease on record for slot, if there is one.
func (l *Leases) get(r store.Reader, slot Slot) (Lease, bool, error) {
	if !slot.valid() {
		return Lease{}, false, nil
	}
	b := r.Get(slot.key())
	if b == nil {
		return Lease{}, false, nil
	}
	lease, err := l.decode(slot, b)
	return lease, err == nil, err
}

// decode is decodeLease, which it asks only about a record that is not the one that
// slot had the last time: the record decides, and is read from the store each time.
func (l *Leases) decode(slot Slot, b []byte) (Lease, error) {
	l.mu.RLock()
	known, ok := l.read[slot]
	l.mu.RUnlock()
	if ok && string(b) == string(known.record[:]) {
		return known.lease, nil
	}
	lease, err := decodeLease(slot, b)
	if err != nil {
		return Lease{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.read) >= readMost {
		clear(l.read)
	}
	l.read[slot] = read{[leaseSize]byte(b), lease}
	return lease, nil
}

// lost is the refusal for a holder that is not the current one. It tells which
// tokens were compared, and no identity.
func lost(h Holder, held Lease, found bool) error {
	why := "the slot has no lease"
	if found {
		why = fmt.Sprintf("token %d was given, %d is current", h.Token, held.Token)
		if h.Token == held.Token {
			why = "the process identity is not the holder's"
		}
	}
	return refusal.New(refusal.ActorLeaseLost, fmt.Sprintf("this process does not hold the lease of %s", h.Slot), why,
		"stop: nothing that this process does counts any more")
}

// A Record is one lease on record, or why it cannot be read.
type Record struct {
	Slot      Slot
	Lease     Lease // zero where Err is set
	Remaining time.Duration
	Err       error // lease_corrupt
}

// List returns every lease on record by slot, damaged ones with their error.
func (l *Leases) List(ctx context.Context) ([]Record, error) {
	var out []Record
	err := l.store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		now := l.now()
		r.Scan([]byte{Space}, nil, func(k, v []byte) bool {
			slot, ok := parseSlot(k)
			if !ok {
				out = append(out, Record{Slot: Slot{Actor: fmt.Sprintf("%q", k[1:])},
					Err: refusal.New(refusal.LeaseCorrupt, "a lease has an unreadable key", fmt.Sprintf("%q", k), "run `sovereign verify`")})
				return true
			}
			lease, err := decodeLease(slot, v)
			rec := Record{Slot: slot, Lease: lease, Err: err}
			if err == nil {
				rec.Remaining = l.Remaining(lease, now)
			}
			out = append(out, rec)
			return true
		})
		return nil
	})
	return out, err
}

// Reset removes the record of slot, damaged or not: the operator's way out of
// lease_corrupt (P1.9). It is refused, actor_lease_held, while the lease is kept
// for a living process. Removing what is not there is no error; existed
// tells.
func (l *Leases) Reset(ctx context.Context, slot Slot) (existed bool, err error) {
	if !slot.valid() {
		return false, nil
	}
	err = l.store.Update(ctx, func(tx store.Tx) error {
		// Looked at within the transaction: a process that is being started
		// counts from before its lease is granted.
		if l.alive(slot) {
			return refusal.New(refusal.ActorLeaseHeld, fmt.Sprintf("the lease of %s is held by a living process", slot),
				"resetting it would fence that process off", "run `sovereign stop "+slot.Actor+"` first")
		}
		existed = tx.Get(slot.key()) != nil
		if existed {
			tx.Delete(slot.key())
		}
		return nil
	})
	return existed, err
}

func (l *Leases) alive(slot Slot) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, kept := l.kept[slot]
	return kept || l.starting[slot] > 0
}

// Kept reports whether token's lease is being kept for a living process.
func (l *Leases) Kept(slot Slot, token Token) bool { return l.keeps(slot, token) }
