package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

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
	// maxWaitingSize bounds each of those: with what its sender added that nobody reads,
	// and its id, all of it is held until it is answered.
	maxWaitingSize = 128 << 10 // bytes

	// maxBulky bounds the requests whose answers may be large, a message's body
	// each or a page of a list, from when they fetch it until it is written.
	maxBulky = 128
	// maxClaimed bounds the bytes of claims that are not written yet, where a
	// claim asks for more than one message.
	maxClaimed = 32 << 20
)

// A link is one connection: it reads requests, has them answered side by side,
// and writes the answers as they come.
type link struct {
	conn    net.Conn
	out     *protocol.Encoder
	handler handler
	log     *slog.Logger
	watch   *watch
	long    func() (over func()) // protocol.Decoder.Long; nil where it need not be bounded

	wait     context.Context // of what only waits
	endWaits context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	eased   sync.Cond  // signalled when running or unread falls, and by close
	running int
	unread  int // bytes of the running requests
	waits   int
	ids     map[protocol.ID]struct{} // of the requests not yet answered, but inline's
	claimed int                      // bytes of claims not yet written
	closed  bool

	inline   *call  // the goroutine that reads answers it itself; nil = it reads
	answered uint64 // requests that were inline
	seen     uint64 // answered when watch looked

	reading
	spare atomic.Bool // a goroutine waits for again

	paused atomic.Bool        // pause was called
	rest   protocol.Rest      // of a link that was paused: what was read of the next line
	back   []protocol.Request // mu guards; to be asked anew

	bulk    chan struct{} // holds one for each large answer under way
	gone    chan struct{} // closed when closed is set
	writing sync.Mutex    // held for each write, so that those after a failed one are not begun
	served  chan struct{} // closed when serve has returned; another one once it is served again, written with Server.mu and mu held
}

func newLink(conn net.Conn, h handler, w *watch, log *slog.Logger) *link {
	l := &link{conn: conn, handler: h, watch: w, log: log, ids: map[protocol.ID]struct{}{}, served: make(chan struct{}),
		bulk: make(chan struct{}, maxBulky), gone: make(chan struct{})}
	l.eased.L = &l.mu
	l.wait, l.endWaits = context.WithCancelCause(context.Background())
	l.out = protocol.NewEncoder(newPatient(conn, writeTimeout))
	return l
}

// hasRoom waits until another request may be read. It is false once the link
// is closed.
func (l *link) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (l.running >= maxRunning || l.unread >= maxUnread) {
		l.eased.Wait()
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

// list has the id of c be refused to others until c is answered.
func (l *link) list(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listLocked(c)
}

func (l *link) listLocked(c *call) {
	if c.req.ID != "" && c.req.ID != protocol.Null && !c.unlisted {
		l.ids[c.req.ID] = struct{}{}
		c.listed = true
	}
}

// unlist is before c is answered: the peer may use its id again once it has the
// answer.
func (l *link) unlist(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.listed {
		delete(l.ids, c.req.ID)
	}
	c.unlisted = true
}

func (l *link) answer(c *call) {
	a := l.handler.handle(context.Background(), l.wait, c)
	l.unlist(c)
	var sent bool
	if a.again != nil {
		l.mu.Lock()
		l.back = append(l.back, *a.again)
		l.mu.Unlock()
	} else if c.req.ID == "" {
		sent = true
	} else {
		c.out = protocol.Response{JSONRPC: "2.0", ID: c.req.ID, Error: a.err}
		if a.err == nil {
			c.out.Result = a.result
		}
		sent = l.send(&c.out)
	}
	if a.told != nil {
		a.told.told(sent)
	}
	c.slim()
	l.mu.Lock()
	l.claimed -= c.claimed
	c.leaveLocked()
	l.mu.Unlock()
}

func (l *link) write(id protocol.ID, err *protocol.Error) bool {
	return l.send(&protocol.Response{JSONRPC: "2.0", ID: id, Error: err})
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
	if r, ok := v.(*protocol.Response); ok && refusal.Has(err, refusal.MessageTooLarge) {
		// Nothing of it was written.
		_ = l.out.Encode(&protocol.Response{JSONRPC: "2.0", ID: r.ID, Error: protocol.ErrorOf(err)})
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
	l.mu.Lock()
	served := l.served
	l.mu.Unlock()
	select {
	case <-served:
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
	l.eased.Broadcast()
	_ = l.conn.Close()
}
