package mailbox

import (
	"cmp"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
)

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

// granted says that a claim has been granted.
func (x *index) granted(id ID, h *hold) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		return
	}
	x.enterLocked(id, h)
}

// enterLocked remembers a hold, in the place of an earlier one of its message. The caller
// holds mu.
func (x *index) enterLocked(id ID, h *hold) {
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

// dropLocked forgets a hold. The caller holds mu.
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

// ended says that a claim has ended. A later claim of the same message is left
// alone.
func (x *index) ended(ref Ref) {
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
	slices.SortFunc(out, func(a, b Ref) int { return cmp.Compare(a.ID, b.ID) })
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
