package mailbox

import (
	"slices"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// The index is a fold over committed changes: who waits, until when, and who
// holds what. It lives in memory; Load reads the claims into it, and claims the rest, block by block.
// It is a hint: a claim re-reads its one record and decides there (P3.11).
//
// The rule that keeps it honest: whoever commits a change that makes a message
// NEW pushes it afterwards. An entry whose record says otherwise is dropped by
// the claim that meets it; a missing entry cannot arise.
type index struct {
	mu     sync.Mutex // guards everything below
	loaded bool
	queues map[string]*queue
	unread map[block]struct{} // blocks on disk of which nothing is in queues and due
	bits   uint8              // of an id, that its block leaves out
	reads  *reading           // the one of them that is being read, nil = none

	due      heap[dueEntry]             // NEW messages that wait for their time
	dueWake  chan struct{}              // closed and replaced when the earliest due time changes
	exp      heap[*hold]                // holds that something must be done about, by when
	expWake  chan struct{}              // closed and replaced when the earliest expiry changes
	holds    map[ID]*hold               // claims that are held
	byHolder map[fence.Process]*hold    // the first of each holder, see hold.next
	withheld map[fence.Process]struct{} // of those in byHolder; their claims do not expire into other hands

	need     func() (done func()) // fence.Leases.Need
	attended func()               // ends the need of the lease clock; nil while nothing can expire
}

// A queue is one actor's part of the index.
type queue struct {
	levels  []level // by priority, highest first
	waiting []chan struct{}
	paused  bool
}

// A level is the ready messages of one priority: a min-heap of ids, and the blocks in
// which there may be more. A block that has been read meanwhile counts for nothing.
type level struct {
	priority int
	ids      heap[ID]
	blocks   []block // ascending
}

func newLevel(priority int) level {
	return level{priority: priority, ids: heap[ID]{before: func(a, b ID) bool { return a < b }}}
}

// A hold is a claim as the index remembers it.
type hold struct {
	id        ID
	place     int           // in index.exp, -1 while it is not there
	at        fence.Instant // wakeAt as index.exp knows it: renewals move it lazily
	holder    fence.Holder
	token     fence.Token
	attempt   int
	request   string
	auto      bool
	expiresAt fence.Instant // of a manual claim, or the record's of an auto one
	limitAt   fence.Instant // the end of its actor's timeout, 0 none
	staleAt   fence.Instant // when its progress must have changed, 0 never

	next, previous *hold // of the same holder, in no order; nil at the ends
}

// wakeAt is when something must be done about h: a manual claim expires, an
// auto claim reaches the end of its actor's timeout, or its progress has stayed the
// same for too long. 0: never.
func (h *hold) wakeAt() fence.Instant {
	at := h.expiresAt
	if h.auto {
		at = h.limitAt
	}
	if h.staleAt != 0 && (at == 0 || h.staleAt < at) {
		return h.staleAt
	}
	return at
}

func newIndex(need func() (done func()), bits uint8) *index {
	if bits == 0 {
		bits = blockBits
	}
	return &index{need: need, bits: bits, unread: map[block]struct{}{}, queues: map[string]*queue{}, holds: map[ID]*hold{}, byHolder: map[fence.Process]*hold{}, withheld: map[fence.Process]struct{}{},
		due: heap[dueEntry]{before: dueEntry.before}, dueWake: make(chan struct{}),
		// A hold knows its place, so that an ended claim leaves nothing behind.
		exp:     heap[*hold]{before: func(a, b *hold) bool { return a.at < b.at }, moved: func(h *hold, place int) { h.place = place }},
		expWake: make(chan struct{})}
}

func (x *index) isLoaded() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.loaded
}

func (x *index) queue(actor string) *queue {
	q := x.queues[actor]
	if q == nil {
		q = &queue{}
		x.queues[actor] = q
	}
	return q
}

// push says that a message is NEW. Without Load it does nothing.
func (x *index) push(actor string, id ID, priority int, dueAt, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		return
	}
	x.pushRead(readied{actor, id, priority, dueAt}, now)
}

func (x *index) pushLocked(actor string, id ID, priority int, dueAt, now time.Time) {
	if dueAt.After(now) {
		first := len(x.due.all) == 0 || dueAt.UnixNano() < x.due.all[0].at
		x.due.push(dueEntry{at: dueAt.UnixNano(), id: id, actor: actor, priority: priority})
		if first {
			close(x.dueWake)
			x.dueWake = make(chan struct{})
		}
		return
	}
	x.queue(actor).add(id, priority)
}

// add makes a message ready and wakes one who waits.
func (q *queue) add(id ID, priority int) {
	q.level(priority).ids.push(id)
	q.wake()
}

// level is the level of a priority. It is valid until the next call.
func (q *queue) level(priority int) *level {
	i, found := slices.BinarySearchFunc(q.levels, priority, func(l level, p int) int { return p - l.priority })
	if !found {
		q.levels = slices.Insert(q.levels, i, newLevel(priority))
	}
	return &q.levels[i]
}

// wake tells the first who waits to look again, if there is something to see.
func (q *queue) wake() {
	if q.paused || len(q.waiting) == 0 || q.empty() {
		return
	}
	close(q.waiting[0])
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
}

func (q *queue) empty() bool {
	for i := range q.levels {
		if len(q.levels[i].ids.all) > 0 || len(q.levels[i].blocks) > 0 {
			return false
		}
	}
	return true
}

// take removes the first ready message of an actor: highest priority, then send
// order. Where that may lie in a block that has not been read, it returns that
// block, which is to be read first. Where there is none it returns a
// channel that is closed when it is worth looking again; leave must be called with a
// channel no longer waited on.
func (x *index) take(actor string, wait bool) (id ID, ok bool, again chan struct{}, unread *block) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue(actor)
	if !q.paused {
		for i := range q.levels {
			l := &q.levels[i]
			if k, ok := x.before(l); ok {
				return 0, false, nil, &k
			}
			if len(l.ids.all) > 0 {
				return l.ids.pop(), true, nil, nil
			}
		}
	}
	if wait {
		again = make(chan struct{})
		q.waiting = append(q.waiting, again)
	}
	return 0, false, again, nil
}

// leave withdraws a channel got from take. If it had been woken, the next one
// is woken in its place, so that no message waits beside an idle worker.
func (x *index) leave(actor string, again chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue(actor)
	if i := slices.Index(q.waiting, again); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	q.wake()
}

// pause stops or resumes deliveries of an actor.
func (x *index) pause(actor string, paused bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue(actor)
	q.paused = paused
	for range len(q.waiting) {
		q.wake()
	}
}

// popDue moves every message that is due at now to its queue and returns when
// the next one is due (zero: none) and a channel closed when that changes.
func (x *index) popDue(now time.Time) (next time.Time, changed <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.due.all) > 0 && x.due.all[0].at <= now.UnixNano() {
		e := x.due.pop()
		x.queue(e.actor).add(e.id, e.priority)
	}
	if len(x.due.all) > 0 {
		next = time.Unix(0, x.due.all[0].at)
	}
	return next, x.dueWake
}

// hold says that a claim has been granted.
func (x *index) hold(id ID, h *hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		return
	}
	x.holdLocked(id, h)
}

func (x *index) holdLocked(id ID, h *hold) {
	if old := x.holds[id]; old != nil {
		x.dropLocked(old)
	}
	h.id, h.place = id, -1
	x.holds[id] = h
	if h.next = x.byHolder[h.holder.Process]; h.next != nil {
		h.next.previous = h
	}
	x.byHolder[h.holder.Process] = h
	x.expireAt(h)
}

// expireAt enters a hold into the expiry heap, or moves it to its present time.
func (x *index) expireAt(h *hold) {
	defer x.attend()
	h.at = h.wakeAt()
	if _, ok := x.withheld[h.holder.Process]; ok {
		h.at = 0
	}
	switch {
	case h.at == 0 && h.place >= 0:
		x.exp.remove(h.place)
		return
	case h.at == 0:
		return
	case h.place >= 0:
		x.exp.fix(h.place)
	default:
		x.exp.push(h)
	}
	if x.exp.all[0] == h {
		close(x.expWake)
		x.expWake = make(chan struct{})
	}
}

// attend has the lease clock looked after while anything can expire.
func (x *index) attend() {
	switch waits := len(x.exp.all) > 0; {
	case waits && x.attended == nil:
		x.attended = x.need()
	case !waits && x.attended != nil:
		x.attended()
		x.attended = nil
	}
}

// dropLocked forgets a hold.
func (x *index) dropLocked(h *hold) {
	if h.place >= 0 {
		x.exp.remove(h.place)
		x.attend()
	}
	delete(x.holds, h.id)
	if h.next != nil {
		h.next.previous = h.previous
	}
	switch {
	case h.previous != nil:
		h.previous.next = h.next
	case h.next != nil:
		x.byHolder[h.holder.Process] = h.next
	default:
		delete(x.byHolder, h.holder.Process)
		delete(x.withheld, h.holder.Process)
	}
	h.next, h.previous = nil, nil
}

// withhold keeps the claims of p from being swept, until they have ended.
func (x *index) withhold(p fence.Process) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byHolder[p] == nil {
		return
	}
	x.withheld[p] = struct{}{}
	for h := x.byHolder[p]; h != nil; h = h.next {
		x.expireAt(h)
	}
}

func (x *index) withholds(p fence.Process) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.withheld[p]
	return ok
}

// renewed says that a claim has been renewed, or has made progress.
func (x *index) renewed(ref Ref, expiresAt, staleAt fence.Instant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// The heap keeps an earlier time; it is set right when it comes up. A later one would
	// come up too late: a reload can have shortened what progress may take.
	if h := x.holds[ref.ID]; h != nil && h.token == ref.Token {
		h.expiresAt = max(h.expiresAt, expiresAt)
		h.staleAt = staleAt
		if at := h.wakeAt(); (h.place >= 0) != (at != 0) || at < h.at {
			x.expireAt(h)
		}
	}
}

// unhold says that a claim has ended. A later claim of the same message is left
// alone.
func (x *index) unhold(ref Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.holds[ref.ID]; h != nil && h.token == ref.Token {
		x.dropLocked(h)
	}
}

// held returns the messages behind from that are claimed, upwards, or downwards where
// back is true; from 0 is the beginning of either. Without Load it knows none: ok is
// false.
func (x *index) held(from ID, back bool) (ids []ID, ok bool) {
	x.mu.Lock()
	for id := range x.holds {
		if from == 0 || id != from && (id < from) == back {
			ids = append(ids, id)
		}
	}
	ok = x.loaded
	x.mu.Unlock()
	slices.Sort(ids)
	if back {
		slices.Reverse(ids)
	}
	return ids, ok
}

// heldBy returns the claims of a process, in id order; request "" means all.
func (x *index) heldBy(p fence.Process, request string) []Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Ref
	for h := x.byHolder[p]; h != nil; h = h.next {
		if request == "" || h.request == request {
			out = append(out, Ref{ID: h.id, Token: h.token})
		}
	}
	slices.SortFunc(out, func(a, b Ref) int { return int(int64(a.ID) - int64(b.ID)) })
	return out
}

// nextExpiry returns the earliest instant at which a claim may need attention.
func (x *index) nextExpiry() (at fence.Instant, ok bool, changed <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settleExpiries()
	if len(x.exp.all) == 0 {
		return 0, false, x.expWake
	}
	return x.exp.all[0].at, true, x.expWake
}

// settleExpiries moves renewed claims at the front of the heap to their present
// time.
func (x *index) settleExpiries() {
	for len(x.exp.all) > 0 && x.exp.all[0].at != x.exp.all[0].wakeAt() {
		x.exp.all[0].at = x.exp.all[0].wakeAt()
		x.exp.fix(0)
	}
}

// expired removes from the heap and returns the claims that need attention at
// now: manual ones that nobody has renewed, and those whose process is to be ended,
// since they have used up their actor's timeout or make no progress.
func (x *index) expired(now fence.Instant) (manual, overdue []expiredClaim) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		x.settleExpiries()
		if len(x.exp.all) == 0 || x.exp.all[0].at > now {
			return manual, overdue
		}
		h := x.exp.pop()
		x.attend()
		c := expiredClaim{ref: Ref{ID: h.id, Token: h.token}, holder: h.holder}
		switch {
		case h.staleAt != 0 && h.at == h.staleAt:
			c.why = CategoryNoProgress
			overdue = append(overdue, c)
		case h.auto, h.limitAt != 0 && h.at >= h.limitAt:
			c.why = CategoryTimeout
			overdue = append(overdue, c)
		default:
			manual = append(manual, c)
		}
	}
}

// expireAgain enters a claim whose sweep could not be made once more.
func (x *index) expireAgain(ref Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.holds[ref.ID]; h != nil && h.token == ref.Token {
		x.expireAt(h)
	}
}

type expiredClaim struct {
	ref    Ref
	holder fence.Holder
	why    Category // of one whose process is to be ended
}

type dueEntry struct {
	at       int64 // wall clock, ns since 1970
	id       ID
	actor    string
	priority int
}

func (e dueEntry) before(other dueEntry) bool {
	return e.at < other.at || e.at == other.at && e.id < other.id
}
