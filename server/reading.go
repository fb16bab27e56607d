package server

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// One goroutine of a link reads. A short request with none behind it that has come
// already it answers itself, without a word to another goroutine: that is what a
// peer sends that asks one thing after the other. Before such a request waits, or
// where it is under way for longer than heldUp, the reading is passed on, so
// that no other request waits for it. Whatever else is read is answered side by
// side, by goroutines of its own.

// short reports whether a request of a method does no more than at most a commit,
// or says that it waits.
func short(method string) bool {
	switch method {
	case protocol.MethodSend, protocol.MethodClaim, protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease,
		protocol.MethodRenew, protocol.MethodCheck, protocol.MethodReady, protocol.MethodPing, protocol.MethodHello:
		return true
	}
	return false
}

// A reading is that of one serve.
type reading struct {
	lines *protocol.Decoder // of who reads
	again chan *call        // to the goroutine that waits for another call, nil = to read, if there is one; closed when there will be none
	over  chan struct{}     // closed when nothing more is read
	calls sync.WaitGroup    // the goroutines beside that of serve
	done  *call             // who reads answered it, and may use it again; nil = there is none

	passOn bool // it ended so that the link can be passed on; written before over, and by serve
}

// serve reads and answers until the peer ends the connection, close is called
// or stop ends, and returns once every request has been answered. When stop
// ends, requests that wait are ended, and the running ones are finished. parked is
// whether it did so for pause, with the connection open: from when served is closed
// the link may be served anew by another goroutine, so nothing of it tells that.
func (l *link) serve(stop context.Context) (parked bool) {
	defer close(l.served)
	quit := context.AfterFunc(stop, func() {
		l.endWaits(context.Cause(stop))
		_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // nothing more is read
	})
	l.reading = reading{lines: protocol.Resume(l.rest, l.conn), again: make(chan *call), over: make(chan struct{})}
	l.lines.Long = l.long
	for _, req := range l.takeBack() {
		if c := (&call{link: l, size: len(req.Params), req: req}); l.enter(c) {
			l.list(c)
			l.aside(c)
		}
	}
	l.work(nil)
	<-l.over
	l.calls.Wait()
	l.passOn = quit() && l.passOn
	if !l.passOn {
		l.close()
	}
	return l.passOn
}

var errPeerGone = errors.New("the peer asks nothing more")

// work answers c, or reads where it is nil, and then what comes next unless another
// goroutine waits for that already: one that has answered before need not grow its
// stack anew.
func (l *link) work(c *call) {
	for {
		if c != nil {
			l.answer(c)
		} else {
			l.read()
		}
		if !l.spare.CompareAndSwap(false, true) {
			return
		}
		var more bool
		if c, more = <-l.again; !more {
			return
		}
		l.spare.Store(false)
	}
}

// aside has another goroutine answer c, or read where it is nil.
func (l *link) aside(c *call) {
	select {
	case l.again <- c:
	default:
		l.calls.Go(func() { l.work(c) })
	}
}

// read reads until the end, or until the reading has been passed on.
func (l *link) read() {
	for {
		c, err := l.next()
		switch {
		case c == nil:
			l.endReading(err)
			return
		case !l.enter(c):
		case !short(c.req.Method) || l.lines.More():
			l.list(c)
			l.aside(c)
		case !l.answerReading(c):
			return
		default:
			*c = call{} // nothing of it is kept
			l.done = c
		}
	}
}

// next returns the next request; nil with the error that ended the reading, which
// is nil where the link is closed.
func (l *link) next() (*call, error) {
	for l.hasRoom() {
		line, err := l.lines.Line()
		if errors.Is(err, protocol.ErrLineTooLong) {
			l.write(protocol.Null, protocol.ErrorOf(err).Coded(protocol.CodeParse))
			continue
		}
		if err != nil {
			return nil, err
		}
		req, wrong := protocol.ParseRequest(line)
		if wrong != nil {
			l.write(req.ID, wrong)
			continue
		}
		c := l.done
		if c == nil {
			c = new(call)
		}
		l.done = nil
		c.link, c.size, c.req = l, len(line), req
		return c, nil
	}
	return nil, nil
}

// endReading ends what only waits.
func (l *link) endReading(err error) {
	l.rest = l.lines.Rest()
	close(l.again)
	l.passOn = l.paused.Load() && errors.Is(err, os.ErrDeadlineExceeded)
	if l.passOn {
		l.endWaits(errPassedOn)
	} else {
		l.endWaits(errPeerGone)
	}
	close(l.over)
}

// answerReading answers c on the goroutine that reads, and reports whether that is
// still to read.
func (l *link) answerReading(c *call) bool {
	l.mu.Lock()
	l.inline = c
	l.answered++
	l.mu.Unlock()
	l.watch.begin()
	l.answer(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inline != c {
		return false
	}
	l.inline = nil
	return true
}

// passReading has another goroutine read, if it is c's that would.
func (l *link) passReading(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passReadingLocked(c)
}

func (l *link) passReadingLocked(c *call) {
	if l.inline != c {
		return
	}
	l.inline = nil
	l.listLocked(c)
	l.aside(nil)
}
