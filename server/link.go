package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// The bounds of one connection. Beyond maxRunning requests, or maxUnread bytes
// of them, no more are read until some are done. Requests that wait for
// something to happen do not count among those, so that they delay nobody;
// they are counted against maxWaiting, beyond which they are refused.
const (
	maxRunning = 1024
	maxUnread  = 32 << 20 // bytes
	maxWaiting = 256

	// maxBulky bounds the requests whose answers may be large, a message's body
	// each or a page of a list, from when they fetch it until it is written.
	maxBulky = 128
	// maxClaimed bounds the bytes of claims that are not written yet, where a
	// claim asks for more than one message.
	maxClaimed = 32 << 20
)

// An answer is what a request ends with. Where err is nil, result is sent.
// told, if there is one, is called with whether the answer was written; where it
// was not, the peer cannot have got it.
type answer struct {
	result any
	err    *protocol.Error
	told   func(sent bool)
	again  *protocol.Request // the wait was ended so that the link can be passed on: this is asked anew then
}

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
	once sync.Once // for leaving the running

	bulk    bool // holds one of the link's bulky places
	claimed int  // bytes of it in the link's claimed
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
	case <-c.link.gone:
	}
	select {
	case <-c.link.gone:
		return refusal.New(refusal.Unavailable, "the answer cannot be given", "the connection has ended", "")
	default:
		return nil
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
// the connection wait already. The caller calls done when it has waited.
func (c *call) waiting() (done func(), err error) {
	if c.link == nil { // in process, without a connection
		return func() {}, nil
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
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waits--
	}, nil
}

// leaveLocked ends that the call counts among the running.
func (c *call) leaveLocked() {
	c.once.Do(func() {
		c.link.running--
		c.link.unread -= c.size
		c.link.room.Signal()
	})
}

// A link is one connection: it reads requests, has them answered side by side,
// and writes the answers as they come.
type link struct {
	conn    net.Conn
	out     *protocol.Encoder
	handler handler
	log     *slog.Logger
	long    func() (over func()) // protocol.Decoder.Long; nil where it need not be bounded

	wait     context.Context // of what only waits
	endWaits context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	room    sync.Cond  // signalled when running or unread falls, and by close
	running int
	unread  int // bytes of the running requests
	waits   int
	ids     map[protocol.ID]struct{} // of the requests not yet answered
	claimed int                      // bytes of claims not yet written
	closed  bool

	again chan *call  // to the goroutine that waits for another call, if there is one; closed when there will be none
	spare atomic.Bool // there is one

	paused atomic.Bool        // pause was called
	rest   protocol.Rest      // of a link that was paused: what was read of the next line
	back   []protocol.Request // mu guards; to be asked anew

	bulk    chan struct{} // holds one for each large answer under way
	gone    chan struct{} // closed when closed is set
	writing sync.Mutex    // held for each write, so that those after a failed one are not begun
	served  chan struct{} // closed when serve has returned
}

func newLink(conn net.Conn, h handler, log *slog.Logger) *link {
	l := &link{conn: conn, handler: h, log: log, ids: map[protocol.ID]struct{}{}, served: make(chan struct{}),
		bulk: make(chan struct{}, maxBulky), gone: make(chan struct{}), again: make(chan *call)}
	l.room.L = &l.mu
	l.wait, l.endWaits = context.WithCancelCause(context.Background())
	l.out = protocol.NewEncoder(newPatient(conn, writeTimeout))
	return l
}

// serve reads and answers until the peer ends the connection, close is called
// or stop ends, and returns once every request has been answered. When stop
// ends, requests that wait are ended, and the running ones are finished.
func (l *link) serve(stop context.Context) {
	defer close(l.served)
	quit := context.AfterFunc(stop, func() {
		l.endWaits(context.Cause(stop))
		_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // nothing more is read
	})
	var calls sync.WaitGroup
	err := l.read(&calls)
	close(l.again)
	passOn := l.paused.Load() && errors.Is(err, os.ErrDeadlineExceeded)
	if passOn {
		l.endWaits(errPassedOn)
	} else {
		l.endWaits(errPeerGone)
	}
	calls.Wait()
	if !quit() || !passOn {
		l.close()
	}
}

var errPeerGone = errors.New("the peer asks nothing more")

// read returns the error that ended it, nil where the link is closed.
func (l *link) read(calls *sync.WaitGroup) error {
	lines := protocol.Resume(l.rest, l.conn)
	lines.Long = l.long
	defer func() { l.rest = lines.Rest() }()
	for _, req := range l.takeBack() {
		if c := (&call{link: l, size: len(req.Params), req: req}); l.enter(c) {
			calls.Go(func() { l.work(c) })
		}
	}
	for l.hasRoom() {
		line, err := lines.Line()
		if errors.Is(err, protocol.ErrLineTooLong) {
			l.write(protocol.Null, protocol.ErrorOf(err).Coded(protocol.CodeParse))
			continue
		}
		if err != nil {
			return err
		}
		c := &call{link: l, size: len(line)}
		var wrong *protocol.Error
		if c.req, wrong = protocol.ParseRequest(line); wrong != nil {
			l.write(c.req.ID, wrong)
			continue
		}
		if !l.enter(c) {
			continue
		}
		select {
		case l.again <- c:
		default:
			calls.Go(func() { l.work(c) })
		}
	}
	return nil
}

// work answers c, and then what comes next unless another goroutine waits for that
// already: one that has answered before need not grow its stack anew.
func (l *link) work(c *call) {
	for {
		l.answer(c)
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

// hasRoom waits until another request may be read. It is false once the link
// is closed.
func (l *link) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (l.running >= maxRunning || l.unread >= maxUnread) {
		l.room.Wait()
	}
	return !l.closed
}

// enter counts the call among the running. It answers, and is false, where the
// call is in no form to be run.
func (l *link) enter(c *call) bool {
	id := c.req.ID
	bad := func(why, next string) bool {
		l.write(protocol.Null, protocol.ErrorOf(refusal.New(refusal.BadRequest, "the request cannot be answered", why, next)).
			Coded(protocol.CodeInvalidRequest))
		return false
	}
	if id == "" && c.req.Method != protocol.MethodPing && c.req.Method != protocol.MethodReady {
		// An answer that nobody waits for would lose a claim, or a refusal.
		return bad("it has no id; only ready and ping may be sent without one", "give each request an id")
	}
	l.mu.Lock()
	_, twice := l.ids[id]
	if !twice {
		if id != "" && id != protocol.Null {
			l.ids[id] = struct{}{}
		}
		l.running++
		l.unread += c.size
	}
	l.mu.Unlock()
	if twice {
		// Under the id of the first the error would be taken for its answer.
		return bad("an earlier request with the same id has not been answered yet", "give each request an id of its own")
	}
	return true
}

func (l *link) answer(c *call) {
	a := l.handler.handle(context.Background(), l.wait, c)
	l.mu.Lock()
	delete(l.ids, c.req.ID) // first: the peer may use it again once it has the answer
	l.mu.Unlock()
	var sent bool
	if a.again != nil {
		l.mu.Lock()
		l.back = append(l.back, *a.again)
		l.mu.Unlock()
	} else if c.req.ID == "" {
		sent = true
	} else if a.err != nil {
		sent = l.write(c.req.ID, a.err)
	} else {
		sent = l.send(protocol.Response{JSONRPC: "2.0", ID: c.req.ID, Result: a.result})
	}
	if a.told != nil {
		a.told(sent)
	}
	if c.bulk {
		<-l.bulk
	}
	l.mu.Lock()
	l.claimed -= c.claimed
	c.leaveLocked()
	l.mu.Unlock()
}

func (l *link) write(id protocol.ID, err *protocol.Error) bool {
	return l.send(protocol.Response{JSONRPC: "2.0", ID: id, Error: err})
}

// send writes one line and reports whether it went out. After a write that
// failed midway the stream is of no use, and the link is closed.
func (l *link) send(v any) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	select {
	case <-l.gone:
		return false
	default:
	}
	err := l.out.Encode(v)
	if err == nil {
		return true
	}
	if r, ok := v.(protocol.Response); ok && refusal.Has(err, refusal.MessageTooLarge) {
		// Nothing of it was written.
		_ = l.out.Encode(protocol.Response{JSONRPC: "2.0", ID: r.ID, Error: protocol.ErrorOf(err)})
		return false
	}
	l.log.Debug("connection given up", "err", err)
	l.close()
	return false
}

// drain lets serve come to the end of what the peer wrote before it ended, for
// grace at most, and then ends the connection.
func (l *link) drain(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-l.served:
	case <-timer.C:
		l.close()
	}
}

// close ends the connection at once. It can be repeated.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.gone)
	}
	l.room.Broadcast()
	_ = l.conn.Close()
}
