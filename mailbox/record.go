package mailbox

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// A record is the state of one message: the one record that decides. It lies
// under spaceOpen while the message can still run, under spaceClosed once it
// has ended. What never changes (content) lies apart, so that a claim does not
// rewrite a body.
type record struct {
	id       ID
	state    State
	to       string
	priority int
	dueAt    time.Time   // zero: at once
	attempt  int         // ordinal of the last start
	attempts int         // charged starts since the last retry by hand
	last     fence.Token // of the last claim, 0 before the first; outlives the claim
	claim    claim       // of a CLAIMED message
	parent   Ref         // of a staged message: the claim that it waits for
	endedAt  time.Time   // of a closed message
	purgeAt  time.Time   // of a closed message: when it may be removed, zero = never
	failure  LastFailure // Category "" = none
	group    string      // "" = none; see spaceGroup
	lapsesAt time.Time   // wall clock: not claimed by then, it is DEAD; zero = never
	deaths   int         // processes that died in a row while they worked on it

	keys  [2][9]byte // what key returns, open and closed
	stock stock      // what else a transaction writes of the message is cut from
}

// A claim is the stored part of one attempt. Invariant: a CLAIMED record has a
// token and an expiry (P3.11).
type claim struct {
	slot      int
	process   fence.Process
	lease     fence.Token
	token     fence.Token
	startedAt time.Time
	expiresAt fence.Instant // on the lease clock
	limitAt   fence.Instant // the end of the actor's timeout, 0 = none
	auto      bool          // kept by the supervisor while its lease is
	staleAt   fence.Instant // when progress must have changed, 0 = no such time
	progress  string
	request   string // the claim request's own name, "" = none
	task      bool   // of a child that was started for this message
	cancelled bool   // a person cancelled it; its process is being ended
}

func (r *record) ref() Ref { return Ref{ID: r.id, Token: r.claim.token} }

func (r *record) holder() fence.Holder {
	return fence.Holder{Slot: fence.Slot{Actor: r.to, Number: r.claim.slot}, Process: r.claim.process, Token: r.claim.lease}
}

func (r *record) open() bool { return r.state == New || r.state == Claimed || r.state == staged }

// key is where r lies in its present state. It is a part of r, which is not used for
// another message after a Tx was given it.
func (r *record) key() []byte {
	if r.open() {
		return putIDKey(&r.keys[0], spaceOpen, r.id)
	}
	return putIDKey(&r.keys[1], spaceClosed, r.id)
}

const recordVersion = 1

func (r *record) encode() []byte {
	size := 48
	if r.state == Claimed {
		size += 80
	}
	e := newEncoder(&r.stock, recordVersion, size+len(r.to)+len(r.claim.progress)+len(r.claim.request)+len(r.failure.Reason))
	e.byte(byte(r.state))
	e.string(r.to)
	e.int(int64(r.priority))
	e.time(r.dueAt)
	e.uint(uint64(r.attempt))
	e.uint(uint64(r.attempts))
	e.uint(uint64(r.last))
	e.string(string(r.failure.Category))
	if r.failure.Category != "" {
		e.string(r.failure.Reason)
		e.time(r.failure.At)
	}
	switch r.state {
	case Claimed:
		id, _ := r.claim.process.Bytes()
		e.uint(uint64(r.claim.slot))
		e.raw(id[:])
		e.uint(uint64(r.claim.lease))
		e.uint(uint64(r.claim.token))
		e.time(r.claim.startedAt)
		e.int(int64(r.claim.expiresAt))
		e.int(int64(r.claim.limitAt))
		var flags byte
		if r.claim.auto {
			flags |= 1
		}
		if r.claim.cancelled {
			flags |= 2
		}
		if r.claim.task {
			flags |= 4
		}
		e.byte(flags)
		e.string(r.claim.progress)
		e.string(r.claim.request)
	case staged:
		e.uint(uint64(r.parent.ID))
		e.uint(uint64(r.parent.Token))
	case Done, Dead, Parked:
		e.time(r.endedAt)
		e.time(r.purgeAt)
	}
	r.encodeMore(e)
	return e.seal()
}

// decodeRecord reads the record of message id. names shares the strings of
// known recipients; nil is allowed.
func decodeRecord(id ID, b []byte, names func([]byte) string) (*record, error) {
	r := new(record)
	if err := r.decode(id, b, names); err != nil {
		return nil, err
	}
	return r, nil
}

// decode reads the record of message id into r. After an error r is of no use.
func (r *record) decode(id ID, b []byte, names func([]byte) string) error {
	what := named{"message", id}
	d, err := unseal(b, recordVersion, what)
	if err != nil {
		return err
	}
	*r = record{id: id, state: State(d.byte())}
	if to := d.bytes(); names != nil {
		r.to = names(to)
	} else {
		r.to = string(to)
	}
	r.priority = int(d.int())
	r.dueAt = d.time()
	r.attempt = int(d.uint())
	r.attempts = int(d.uint())
	r.last = fence.Token(d.uint())
	r.failure.Category = Category(d.string())
	if r.failure.Category != "" {
		r.failure.Reason = d.string()
		r.failure.At = d.time()
	}
	switch r.state {
	case New:
	case Claimed:
		r.claim.slot = int(d.uint())
		r.claim.process = fence.ProcessOf([16]byte(d.raw(16)))
		r.claim.lease = fence.Token(d.uint())
		r.claim.token = fence.Token(d.uint())
		r.claim.startedAt = d.time()
		r.claim.expiresAt = fence.Instant(d.int())
		r.claim.limitAt = fence.Instant(d.int())
		flags := d.byte()
		r.claim.auto = flags&1 != 0
		r.claim.cancelled = flags&2 != 0
		r.claim.task = flags&4 != 0
		r.claim.progress = d.string()
		r.claim.request = d.string()
		if !d.bad && (r.claim.token == 0 || r.claim.expiresAt == 0) {
			return corrupt(what, "its claim has no token or no expiry")
		}
	case staged:
		r.parent.ID = ID(d.uint())
		r.parent.Token = fence.Token(d.uint())
	case Done, Dead, Parked:
		r.endedAt = d.time()
		r.purgeAt = d.time()
	default:
		return corrupt(what, "its state is unknown")
	}
	r.decodeMore(&d)
	return d.done(what)
}

// What few messages have follows the fields that all have, each behind a tag, in
// this order; a record without any of it ends before.
const (
	tagGroup  = 1 // group
	tagLapses = 2 // lapsesAt
	tagDeaths = 3 // deaths
	tagStale  = 4 // claim.staleAt
)

func (r *record) encodeMore(e *encoder) {
	if r.group != "" {
		e.byte(tagGroup)
		e.string(r.group)
	}
	if !r.lapsesAt.IsZero() {
		e.byte(tagLapses)
		e.time(r.lapsesAt)
	}
	if r.deaths > 0 {
		e.byte(tagDeaths)
		e.uint(uint64(r.deaths))
	}
	if r.state == Claimed && r.claim.staleAt != 0 {
		e.byte(tagStale)
		e.int(int64(r.claim.staleAt))
	}
}

// decodeMore reads what encodeMore wrote, and nothing else.
func (r *record) decodeMore(d *decoder) {
	for last := byte(0); len(d.b) > 0; {
		tag := d.byte()
		if tag <= last {
			d.fail()
			return
		}
		last = tag
		ok := false
		switch tag {
		case tagGroup:
			r.group = d.string()
			ok = r.group != ""
		case tagLapses:
			r.lapsesAt = d.time()
			ok = !r.lapsesAt.IsZero()
		case tagDeaths:
			r.deaths = int(d.uint())
			ok = r.deaths > 0
		case tagStale:
			r.claim.staleAt = fence.Instant(d.int())
			ok = r.state == Claimed && r.claim.staleAt != 0
		}
		if !ok {
			d.fail()
			return
		}
	}
}
