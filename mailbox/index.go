package mailbox

import (
	"slices"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// The index is a fold over committed changes: who waits, until when, and who
// holds what. It lives in memory: Load reads into it what is claimed, and claiming reads what
// waits, block by block.
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
	passed  int // messages handed out in a row before older ones of lower priority
	turn    ID  // that was taken last since so many had been, 0 = none
}

// mostPassed is how many messages in a row may go before an older one because of their
// priority. Then the oldest goes, so that a low priority waits long, and not for ever.
const mostPassed = 64

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
// order; after mostPassed that went before an older one, that one, and says that it is its
// turn. Where that may lie in a block that has not been read, it returns that block, which
// is to be read first. Where there is none it returns 0, and if wait is true a channel that is
// closed when it is worth looking again; leave must be called with a channel no longer
// waited on. A message that is not handed out after all is to be told to untake.
func (x *index) take(actor string, wait bool) (id ID, turn bool, again chan struct{}, unread *block) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue(actor)
	if !q.paused {
		first, oldest := x.firstOf(q)
		if turn = first != oldest && q.passed >= mostPassed; turn {
			first = oldest
		}
		if first >= 0 {
			l := &q.levels[first]
			if k, ok := x.before(l); ok {
				return 0, false, nil, &k
			}
			if q.passed++; first == oldest {
				q.passed = 0
			}
			if id = l.ids.pop(); turn {
				q.turn = id
			} else if q.turn == id { // it was handed out then, and waits again
				q.turn = 0
			}
			return id, turn, nil, nil
		}
	}
	if wait {
		again = make(chan struct{})
		q.waiting = append(q.waiting, again)
	}
	return 0, false, again, nil
}

// untake says that ids, which take has returned, are not handed out: that none of them was
// before another one. The turn of the oldest is the next one's then; otherwise many that
// have been cancelled would keep it from one that waits.
func (x *index) untake(actor string, ids []ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue(actor)
	for _, id := range ids {
		if id == q.turn {
			q.passed, q.turn = mostPassed, 0
		} else if q.passed > 0 {
			q.passed--
		}
	}
}

// firstOf returns which level of q has the message that is next by its priority, and
// which the one that was sent first of all; -1 where there is none. Of a block that has not
// been read the messages count from its first on.
func (x *index) firstOf(q *queue) (first, oldest int) {
	first, oldest = -1, -1
	var least ID
	for i := range q.levels {
		l := &q.levels[i]
		var head ID
		if k, ok := x.before(l); ok {
			head = ID(k) << x.bits
		} else if len(l.ids.all) > 0 {
			head = l.ids.all[0]
		} else {
			continue
		}
		if first < 0 {
			first = i
		}
		if oldest < 0 || head < least {
			oldest, least = i, head
		}
	}
	return first, oldest
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

// NextDue returns, for each actor that has messages which wait for their time, when the
// first of them is due. It reads no store: what waits in blocks that no claim has got to is
// not known yet. It costs a look at each message that waits for its time.
func (b *Box) NextDue() map[string]time.Time {
	b.index.mu.Lock()
	defer b.index.mu.Unlock()
	first := map[string]int64{}
	for _, e := range b.index.due.all {
		if at, ok := first[e.actor]; !ok || e.at < at {
			first[e.actor] = e.at
		}
	}
	out := make(map[string]time.Time, len(first))
	for actor, at := range first {
		out[actor] = time.Unix(0, at)
	}
	return out
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
