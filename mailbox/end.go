package mailbox

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store"
)

// An ending is what endTx wrote, to be folded into the index once its
// transaction is committed.
type ending struct {
	ref      Ref
	holder   fence.Holder // of the attempt
	to       string
	state    State
	how      Category // of the attempt, "" where none ended
	settled  Settled
	sent     []string  // the recipients of what became visible
	ready    []readied // messages that became claimable: this one, what it staged, the next of a group
	purgeAt  time.Time // of a message that has ended for good, zero = never
	lapsesAt time.Time // the earliest end of a time to live among ready, zero = none
	dropped  int       // staged sends that were removed
	more     pending   // staged sends that are still to be handled, 0 = none
}

// A readied message is one that became claimable, at its due time.
type readied struct {
	to       string
	id       ID
	priority int
	dueAt    time.Time
}

// maxInline bounds the staged sends that are handled in the transaction that
// ends their attempt; what is more is written down as pending and handled in
// steps. The end counts as the moment that it is visible all the same.
const maxInline = 10

// endTx ends the claim of rec, whoever says so: a worker's settle, a task's exit,
// the sweep and recovery all come through here. It writes, in the caller's
// transaction, receipt, message state, result, what becomes of staged sends,
// counts, and the event (P2.4, P4.3). The caller has checked the fence.
//
// inline bounds the staged sends handled at once, at most maxInline.
func (b *Box) endTx(tx store.Tx, rec *record, o Outcome, inline int, m moment) (ending, error) {
	verb := verbStatus(o.Verdict)
	if rec.claim.cancelled && o.Verdict != Complete {
		o.Verdict, o.Category = Kill, CategoryCancelled
		if o.Reason == "" { // its worker gave it back
			o.Reason = cancelledReason
		}
	}
	actor := b.policy(rec.to)
	next := follow(o, rec.attempts, actor, m.random)
	reason := printable(o.Reason)
	ref := rec.ref()

	receipt := Receipt{Message: rec.id, Attempt: rec.attempt, Token: rec.claim.token, LeaseToken: rec.claim.lease,
		Process: rec.claim.process, Slot: rec.holder().Slot, StartedAt: rec.claim.startedAt, EndedAt: m.at,
		Status: next.status, Category: o.Category, Counted: next.counted, ByWorker: o.ByWorker, verb: verb, expired: o.expired,
		Reason: reason, ExitCode: o.ExitCode, Signal: o.Signal}
	keys := &rec.stock
	keys.reserve(stockEnd)
	tx.Put(keys.receiptKey(rec.id, rec.attempt), receipt.encode(keys))

	out := ending{ref: ref, holder: rec.holder(), to: rec.to, how: o.Category}
	publish := discardStaged
	if o.Verdict == Complete {
		publish = publishStaged
		if o.Result != nil {
			tx.Put(keys.idKey(spaceResult, rec.id), encodeResult(keys, o.Result, o.ResultTruncated))
		}
	}
	children, more, err := b.stagedStepTx(tx, keys, ref, 0, publish, inline)
	if err != nil {
		return ending{}, err
	}
	if more {
		tx.Put(claimKey(spacePending, ref), []byte{byte(publish)})
		out.more = publish
	}
	out.ready, out.lapsesAt, out.dropped = children.ready, children.lapsesAt, children.dropped
	out.settled.Visible, out.sent = children.ids, children.to

	switch {
	case o.Died:
		rec.deaths++
	case next.counted:
		rec.deaths = 0
	}
	token, attempt, process, slot := rec.claim.token, rec.attempt, rec.claim.process, rec.claim.slot
	if o.Verdict != Complete {
		rec.failure = LastFailure{Category: o.Category, Reason: protocol.Cut(reason, 512), At: m.at}
	}
	rec.attempts = next.attempts
	rec.dueAt = time.Time{}
	if next.delay > 0 {
		rec.dueAt = m.at.Add(next.delay).UTC()
	}
	event := Event{At: m.at, Kind: endKind(next), Actor: rec.to, Slot: slot, Process: process, Message: rec.id,
		Attempt: attempt, Token: token, Category: string(o.Category), Text: protocol.Cut(reason, 512)}
	tx.Append(spaceEvent, event.encode(keys))
	if o.Died && rec.deaths == poisonous {
		b.eventTx(tx, Event{At: m.at, Kind: protocol.EventPoison, Actor: rec.to, Slot: slot, Process: process, Message: rec.id,
			Attempt: attempt, Token: token, Category: string(o.Category), Text: poison(rec.deaths)})
	}
	out.ready = append(out.ready, b.moveTx(tx, rec, next.state, m.at)...)
	out.purgeAt, out.state = rec.purgeAt, rec.state
	if rec.state == New {
		out.lapsesAt = earlier(out.lapsesAt, rec.lapsesAt)
	}
	out.settled.State = rec.state
	out.settled.Attempts = rec.attempts
	return out, nil
}

// endKind names the event of an attempt's end by what became of its message.
func endKind(n afterEnd) protocol.EventKind {
	switch {
	case n.state == Done:
		return protocol.EventCompleted
	case n.state == Dead:
		return protocol.EventDead
	case n.state == Parked:
		return protocol.EventParked
	case n.status == Failed:
		return protocol.EventFailed
	default:
		return protocol.EventReleased
	}
}

// moveTx changes the state of a message: the record under the key of its new
// state, the counts, and what goes by the state: its group, its time to live, when
// it may be removed. One that would be NEW with its time to live over is DEAD. It
// returns what has become claimable by it: the message itself, or the next of its
// group.
func (b *Box) moveTx(tx store.Tx, rec *record, to State, at time.Time) []readied {
	if to == New && rec.lapsed(at) {
		to = Dead
		b.lapseTx(tx, rec, at)
	}
	from := rec.state
	if !rec.lapsesAt.IsZero() {
		switch New {
		case from:
			tx.Delete(lapseKey(rec.lapsesAt, rec.id))
		case to:
			tx.Put(lapseKey(rec.lapsesAt, rec.id), []byte{0})
		}
	}
	switch {
	case rec.group != "":
		return b.readyOf(b.regroupTx(tx, rec, from, to, func() { b.restateTx(tx, rec, to, at) }))
	case to == New:
		b.restateTx(tx, rec, to, at)
		return b.readyOf(rec)
	}
	b.restateTx(tx, rec, to, at)
	return nil
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// readyOf is rec as the index is told of it; nil is nothing.
func (b *Box) readyOf(rec *record) []readied {
	if rec == nil {
		return nil
	}
	return []readied{{rec.to, rec.id, rec.priority, rec.dueAt}}
}

// restateTx writes rec in its new state, and the counts.
func (b *Box) restateTx(tx store.Tx, rec *record, to State, at time.Time) {
	from, oldKey := rec.state, rec.key()
	rec.state = to
	rec.claim = claim{}
	rec.parent = Ref{}
	rec.endedAt = time.Time{}
	if !rec.purgeAt.IsZero() {
		tx.Delete(purgeKey(rec.purgeAt, rec.id))
		rec.purgeAt = time.Time{}
	}
	if !rec.open() {
		rec.endedAt = at
		b.schedulePurgeTx(tx, rec)
	}
	newKey := rec.key()
	if newKey[0] != oldKey[0] {
		tx.Delete(oldKey)
		if rec.open() {
			b.markOpenTx(tx, rec)
		}
	}
	tx.Put(newKey, rec.encode())
	tx.Add(rec.stock.countKey(rec.to, from), -1)
	tx.Add(rec.stock.countKey(rec.to, to), 1)
}

// fold brings a committed ending into the index.
func (b *Box) fold(e ending) {
	b.index.ended(e.ref)
	tally := b.tallies.of(e.to)
	tally.end(e.how)
	b.diagnose(tally, e)
	for i, to := range e.sent {
		b.tallies.of(to).sent.Add(1)
		b.arrivals.tell(e.settled.Visible[i], to)
	}
	b.stale.ends(e.dropped)
	b.pushAll(e.ready)
	b.lapses.set(e.lapsesAt)
	if e.state != New {
		b.stale.ends(1)
		b.ends.tell(e.ref.ID, nil)
		b.retention.set(e.purgeAt)
		if tally.kept() {
			b.retention.again()
		}
	}
	b.journal.appended()
}

// pushAll tells the index what a committed change has made claimable.
func (b *Box) pushAll(ready []readied) {
	if len(ready) == 0 {
		return
	}
	now := b.wall()
	for _, r := range ready {
		b.index.push(r.to, r.id, r.priority, r.dueAt, now)
	}
}

const resultVersion = 1

// A result is stored with a flag that says that it was cut.
func encodeResult(of *stock, body []byte, truncated bool) []byte {
	if len(body) > MaxBody {
		body, truncated = body[:MaxBody], true
	}
	e := newEncoder(of, resultVersion, len(body)+8)
	if truncated {
		e.byte(1)
	} else {
		e.byte(0)
	}
	e.bytes(body)
	return e.seal()
}

func decodeResult(id ID, v []byte) (body []byte, truncated bool, err error) {
	what := named{"the result of message", id}
	d, err := unseal(v, resultVersion, what)
	if err != nil {
		return nil, false, err
	}
	truncated = d.byte() == 1
	body = append([]byte{}, d.bytes()...)
	return body, truncated, d.done(what)
}

// expired reports whether rec's claim has run out at now: its time is up, or it
// reached the end of its actor's timeout. An auto claim's time is not up while
// the supervisor keeps its lease.
func (b *Box) expired(rec *record, now fence.Instant) bool {
	c := &rec.claim
	if c.limitAt != 0 && now >= c.limitAt {
		return true
	}
	if c.stale(now) && !c.task {
		return true
	}
	if c.auto && b.leases.Kept(rec.holder().Slot, c.lease) {
		return false
	}
	return now >= c.expiresAt
}

// stale reports whether c's progress has stayed the same for too long at now. A task
// may still complete then: its supervisor observes which is first, its exit or that.
func (c *claim) stale(now fence.Instant) bool { return c.staleAt != 0 && now >= c.staleAt }

// overdue reports whether c has used up its actor's timeout at now, having been
// renewed up to then.
func (c *claim) overdue(now fence.Instant) bool {
	return c.limitAt != 0 && now >= c.limitAt && (c.auto || c.expiresAt >= c.limitAt)
}

// endsWithItsProcess reports whether c, which has expired at now, is ended by the end
// of its process, and not by a sweep beside it (P4.5).
func (c *claim) endsWithItsProcess(now fence.Instant) bool {
	return c.auto || c.stale(now) || c.overdue(now)
}

// liveTx reports whether the attempt of rec is live: unexpired, and its lease
// token still its slot's current one (P2.3).
func (b *Box) liveTx(r store.Reader, rec *record, now fence.Instant) (bool, error) {
	if b.expired(rec, now) {
		return false, nil
	}
	return b.leases.CurrentTx(r, rec.holder().Slot, rec.claim.lease)
}
