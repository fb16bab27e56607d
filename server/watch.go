package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// heldUp is for how long a request may keep what comes behind it from being read,
// and at most twice as long does: that of a commit on a disk that hangs.
const heldUp = 50 * time.Millisecond

// A watch looks at all links when heldUp is over, while any of them answers a request
// where it is read. A timer for each link went off for one request in three to nine.
type watch struct {
	look func() (busy bool) // at all of them

	set   atomic.Bool // the timer is
	mu    sync.Mutex
	timer *time.Timer // mu guards; nil until it is needed
}

// begin is called after a link has said that it is busy.
func (w *watch) begin() {
	if w.set.Load() || !w.set.CompareAndSwap(false, true) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(heldUp, w.over)
	} else {
		w.timer.Reset(heldUp)
	}
}

func (w *watch) over() {
	w.set.Store(false) // first: who is busy after it has been looked at sets it anew
	if w.look() {
		w.begin()
	}
}

// lookAt looks at all links.
func (s *Server) lookAt() (busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		busy = l.look() || busy
	}
	return busy
}

// look passes the reading on where the request that is answered was already when it
// was looked at before, and reports whether there is one.
func (l *link) look() (busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inline == nil {
		return false
	}
	if l.seen == l.answered {
		l.passReadingLocked(l.inline)
	}
	l.seen = l.answered
	return true
}
