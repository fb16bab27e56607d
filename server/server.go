package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A kind of connection decides who may ask what on it.
type kind uint8

const (
	control kind = iota + 1 // people
	worker                  // workers by identity and lease token
)

// The bounds of a server.
const (
	// maxConnections of one user; one that is neither root nor the
	// supervisor's own has fewer, so that it cannot use up the descriptors that
	// children are started with.
	maxConnections        = 2048
	maxConnectionsOfOther = 128

	// closeGrace is how long requests that run may take once the server ends.
	closeGrace = 2 * time.Second

	// channelGrace is how long what a worker wrote before it ended may take to
	// be carried out.
	channelGrace = 500 * time.Millisecond
)

// A Server answers people and workers.
type Server struct {
	box       *mailbox.Box
	people    *Control
	processes Processes
	log       *slog.Logger
	given     given
	tally     tally
	watch     watch
	longOwn   chan struct{} // one for each long line that is being read
	longOther chan struct{}

	stop context.Context // ends when the server is to end
	end  context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	links   map[*link]served
	byUser  map[caller]int // connections from sockets
	taken   taken          // the same, all together
	limit   int            // of them; see Limit
	closed  bool
	paused  chan struct{}  // closed when a pause ends; nil = there is none
	serving sync.WaitGroup // one for each link; added to under mu while not closed
}

// served is what a server knows of a link.
type served struct {
	kind kind   // 0 = it is a worker's channel
	left func() // called, with mu held, when it has ended
}

// A caller is whose connections are counted together: those of one user on one
// socket, so that workers do not lock out people.
type caller struct {
	socket kind
	uid    int
}

// New returns a server that answers nothing yet. A nil log discards.
func New(box *mailbox.Box, people *Control, processes Processes, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	stop, end := context.WithCancelCause(context.Background())
	s := &Server{box: box, people: people, processes: processes, log: log, stop: stop, end: end,
		links: map[*link]served{}, byUser: map[caller]int{}, limit: math.MaxInt,
		longOwn: make(chan struct{}, maxLongLines), longOther: make(chan struct{}, maxLongLinesOfOther)}
	s.watch.look = s.lookAt
	return s
}

var errStopping = errors.New("the supervisor stops")

// Serve accepts connections until ctx ends or a listener fails. Then it closes
// the listeners, which removes their sockets; lets the requests that run
// finish, for two seconds at most; ends every connection and every channel; and
// returns nothing but the failure of a listener. Channels that were attached
// before Serve are served all the same.
func (s *Server) Serve(ctx context.Context, listeners ...*Listener) error {
	failed := make(chan error, 4*len(listeners))
	var accepting sync.WaitGroup
	for _, l := range listeners {
		for _, socket := range l.sockets() {
			accepting.Go(func() {
				if err := s.accept(l, socket); err != nil {
					failed <- fmt.Errorf("accept on %s: %w", l.file, err)
				}
			})
		}
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.end(errStopping)
	for _, l := range listeners {
		if closeErr := l.Close(); closeErr != nil {
			s.log.Warn("socket not removed", "err", closeErr)
		}
	}
	accepting.Wait()
	s.finish()
	return err
}

// accept returns nil once the listener was closed because the server ends.
func (s *Server) accept(l *Listener, socket *net.UnixListener) error {
	pause := 5 * time.Millisecond
	for {
		err := s.acceptOne(l, socket)
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
		case s.stop.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !s.waitResumed() {
				return nil
			}
		case isTemporary(err):
			// Out of descriptors: those that connect wait until some are free.
			s.log.Warn("connection not accepted", "err", err)
			select {
			case <-time.After(pause):
			case <-s.stop.Done():
				return nil
			}
			pause = min(2*pause, time.Second)
		default:
			return err
		}
	}
}

// acceptOne accepts a connection and greets it. No pause comes in between: nobody would
// pass on what was accepted and is not among the links yet.
func (s *Server) acceptOne(l *Listener, socket *net.UnixListener) error {
	l.accepting.RLock()
	defer l.accepting.RUnlock()
	conn, err := socket.AcceptUnix()
	if err == nil {
		s.greet(conn, l.kind, Connection{}, false)
	}
	return err
}

// greet starts to serve a connection, or turns it away with one line that says
// why. from is what there is to go on with, of one that was adopted: for that there is room.
func (s *Server) greet(conn *net.UnixConn, k kind, from Connection, adopted bool) {
	uid, err := peerUID(conn)
	own := err == nil && (uid == os.Geteuid() || uid == 0)
	if k == control && !own {
		turnAway(conn, refusal.New(refusal.PermissionDenied, "this socket is not for this user",
			"it is for the user who runs the supervisor, and for root", "run the command as that user"))
		return
	}
	if err != nil {
		uid = -1 // all who are unknown count together
	}
	var h handler = s.people
	if k == worker {
		h = &workers{box: s.box, processes: s.processes, given: &s.given}
	}
	l := newLink(conn, counting{h, &s.tally}, &s.watch, s.log)
	l.long = s.longLines(conn, own)
	l.rest, l.back = from.Rest, from.Again
	who := caller{k, uid}
	most := maxConnections
	if !own {
		most = maxConnectionsOfOther
	}
	s.mu.Lock()
	full := s.byUser[who] >= most
	limit, as := s.limit, share{worker: k == worker, own: own}
	crowded := !adopted && !s.taken.fits(limit, as)
	if !full && !crowded && !s.closed {
		s.byUser[who]++
		s.taken.add(as, 1)
		s.startLocked(l, served{k, func() {
			s.taken.add(as, -1)
			if s.byUser[who]--; s.byUser[who] == 0 {
				delete(s.byUser, who)
			}
		}})
	}
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		_ = conn.Close()
	case full:
		turnAway(conn, refusal.New(refusal.Unavailable, "there are too many connections of this user",
			fmt.Sprintf("at most %d are served at one time", most), "close some, or try again later").Later())
	case crowded:
		turnAway(conn, refusal.New(refusal.Unavailable, "there are too many connections",
			fmt.Sprintf("the limit of open files leaves room for %d, of which a quarter is kept for control.sock, and users other than the supervisor's have half", limit),
			"close some, try again later, or raise the limit (ulimit -n, LimitNOFILE= in a unit)").Later())
	}
}

// turnAway answers what nobody asked, and hangs up. A socket's buffer takes one
// short line without waiting.
func turnAway(conn *net.UnixConn, err error) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = protocol.NewEncoder(conn).Encode(&protocol.Response{JSONRPC: "2.0", ID: protocol.Null, Error: protocol.ErrorOf(err)})
	_ = conn.Close()
}

// startLocked serves l in a goroutine that finish joins.
func (s *Server) startLocked(l *link, as served) {
	s.links[l] = as
	if s.paused != nil {
		l.pause()
	}
	s.serving.Go(func() {
		if l.serve(s.stop) {
			return // Resume may have begun to serve it again
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.links, l)
		as.left()
	})
}

// finish ends every connection once its running requests are done, or
// closeGrace is over.
func (s *Server) finish() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-done:
		return
	case <-grace.C:
	}
	s.mu.Lock()
	for l := range s.links {
		l.close()
	}
	s.mu.Unlock()
	<-done // a request cannot outlast its commit, and nothing it writes can block now
}

// A Channel is fd 3 of one living worker, at the supervisor's end.
type Channel struct {
	server *Server
	holder fence.Holder
	link   *link
	queue  chan *protocol.Notification // of pointers: its room costs every idle worker
	once   sync.Once
	done   chan struct{} // closed by Close

	drained context.Context // ends with drain: the worker claims no more
	drain   context.CancelFunc
}

// maxNotices is how many notifications a worker that does not read can have
// outstanding; further ones are dropped, and the fence alone tells it.
const maxNotices = 256

// Attach serves the supervisor's end of a worker's channel: what comes on it
// speaks for h, and for nobody else. The caller calls Close when the process
// has been reaped. It does not block.
func (s *Server) Attach(conn net.Conn, h fence.Holder) *Channel {
	return s.attach(conn, h, handedChannel{})
}

func (s *Server) attach(conn net.Conn, h fence.Holder, from handedChannel) *Channel {
	asks := &workers{box: s.box, processes: s.processes, given: &s.given, bound: &h}
	var drain context.CancelFunc
	asks.drained, drain = context.WithCancel(context.Background())
	l := newLink(conn, counting{asks, &s.tally}, &s.watch, s.log)
	l.rest, l.back = from.Rest, from.Again
	c := &Channel{server: s, holder: h, link: l, queue: make(chan *protocol.Notification, maxNotices), done: make(chan struct{}),
		drained: asks.drained, drain: drain}
	if from.Drained {
		drain()
	}
	for _, n := range from.Notices[:min(len(from.Notices), maxNotices)] {
		c.queue <- &n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.close()
		close(l.served)
		return c
	}
	s.startLocked(l, served{left: func() {}})
	s.serving.Go(c.notify)
	return c
}

// notify writes the notifications until the channel or the server ends.
func (c *Channel) notify() {
	for {
		resumed := c.server.whilePaused()
		if resumed != nil {
			select {
			case <-resumed:
				continue
			case <-c.done:
				return
			case <-c.server.stop.Done():
				return
			}
		}
		select {
		case n := <-c.queue:
			c.link.send(n)
		case <-c.done:
			return
		case <-c.server.stop.Done():
			return
		}
	}
}

// Notify tells the worker something without waiting for it to read. Params may
// be nil. Notifications come in order. After drain, claims that wait are
// answered, with no messages, and later ones do not wait; what a handler waits for
// otherwise, such as the end of what it sent, it still gets.
func (c *Channel) Notify(method string, params any) {
	if method == protocol.NotifyDrain {
		defer c.drain()
	}
	select {
	case c.queue <- &protocol.Notification{JSONRPC: "2.0", Method: method, Params: params}:
	default:
		c.server.log.Warn("notification dropped", "actor", c.holder.Slot.Actor, "slot", c.holder.Slot.Number, "method", method)
	}
}

// Close ends the channel of a process that has ended. What the process had
// written before it ended is still carried out, for half a second at most; what
// waits is ended. It can be repeated.
func (c *Channel) Close() { c.closeWithin(channelGrace) }

func (c *Channel) closeWithin(grace time.Duration) {
	c.once.Do(func() { close(c.done) })
	c.link.drain(grace)
	c.drain()
}
