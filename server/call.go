package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// An answer is what a request ends with. Where err is nil, result is sent.
// told, if there is one, is called with whether the answer was written; where it
// was not, the peer cannot have got it.
type answer struct {
	result any
	err    *protocol.Error
	told   teller
	again  *protocol.Request // the wait was ended so that the link can be passed on: this is asked anew then
}

// A teller is told whether an answer was written.
type teller interface{ told(sent bool) }

func refuse(err error) answer {
	e := protocol.ErrorOf(err)
	if p, ok := errors.AsType[*config.Problems](err); ok {
		for _, one := range p.List[:min(len(p.List), maxConfigProblems)] {
			e.Data.Problems = append(e.Data.Problems, protocol.ConfigProblem(one))
		}
		e.Message = p.List[0].String()
	}
	return answer{err: e}
}

// maxConfigProblems bounds those of an actors.yaml that one answer lists.
const maxConfigProblems = 1000

// A handler answers the requests of one connection, several at a time.
//
// run does not end: what has been asked is finished even if the peer has gone.
// wait ends as soon as the peer can ask nothing more, is drained, or the server
// stops: what only waits ends with it, after it has called c.waiting.
type handler interface {
	handle(run, wait context.Context, c *call) answer
}

// A call is one request under way.
type call struct {
	req  protocol.Request
	link *link
	size int
	out  protocol.Response // its answer

	bulk bool // holds one of the link's bulky places

	// link.mu guards what follows.
	left     bool // no longer one of the running
	listed   bool // its id is among the link's
	unlisted bool // it never is again
	claimed  int  // bytes of it in the link's claimed
}

// bulky waits until the connection has room for another large answer. The
// place is given back once the answer is written. It is refused where the
// answer would go nowhere.
func (c *call) bulky() error {
	if c.link == nil {
		return nil
	}
	select {
	case c.link.bulk <- struct{}{}:
		c.bulk = true
	default:
		c.link.passReading(c)
		select {
		case c.link.bulk <- struct{}{}:
			c.bulk = true
		case <-c.link.gone:
		}
	}
	select {
	case <-c.link.gone:
		return refusal.New(refusal.Unavailable, "the answer cannot be given", "the connection has ended", "")
	default:
		return nil
	}
}

// slim gives the place of bulky back.
func (c *call) slim() {
	if c.bulk {
		c.bulk = false
		<-c.link.bulk
	}
}

// room is what a claim may take of a line, and of what the connection has room
// for beside the answers that are not written yet, in bytes.
func (c *call) room() int {
	if c.link == nil {
		return lineRoom
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return max(1, min(lineRoom, maxClaimed-c.link.claimed))
}

// fit is how many of the messages of one claim, of these sizes in bytes and from
// the first, the connection has room for: all that the answers not yet written
// leave, and one at least.
func (c *call) fit(sizes []int) int {
	if c.link == nil {
		return len(sizes)
	}
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range sizes {
		if i > 0 && l.claimed+n > maxClaimed {
			return i
		}
		l.claimed += n
		c.claimed += n
	}
	return len(sizes)
}

// tell sends a notification ahead of the call's answer and reports whether it
// went out.
func (c *call) tell(method string, params any) (sent bool) {
	return c.link.send(protocol.Notification{JSONRPC: "2.0", Method: method, Params: params})
}

// waiting says that the call is about to wait: from now on it is no longer one
// of those that hold up others. It is refused, unavailable, where too many of
// the connection wait already, and, bad_request, where the request is larger than any
// that waits need be: what it holds while it waits would be bounded by nothing else. The
// caller calls done when it has waited.
func (c *call) waiting() (done func(), err error) {
	if c.link == nil { // in process, without a connection
		return func() {}, nil
	}
	held := c.size
	if c.req.Method == protocol.MethodComplete {
		held = len(c.req.ID) // what it has brought is stored when its next waits, and let go
	}
	if held > maxWaitingSize {
		return nil, badParam("the request is too large to wait",
			fmt.Sprintf("give one that waits at most %d bytes, or do not have it wait", maxWaitingSize))
	}
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits >= maxWaiting {
		return nil, refusal.New(refusal.Unavailable, "too many requests of this connection wait",
			"at most 256 may wait at one time", "wait with fewer requests; ask for several messages with max").Later()
	}
	l.waits++
	c.leaveLocked()
	l.passReadingLocked(c)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waits--
	}, nil
}

// leaveLocked ends that the call counts among the running.
func (c *call) leaveLocked() {
	if c.left {
		return
	}
	c.left = true
	c.link.running--
	c.link.unread -= c.size
	c.link.eased.Signal()
}
