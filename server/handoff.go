package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/descriptor"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// errPassedOn is the cause of the end of what only waits when its connection is about
// to be passed on: it is asked anew then.
var errPassedOn = errors.New("the connection is passed on")

// Handed is what another program needs to serve the connections of this one: it
// inherits the descriptors under their numbers.
type Handed struct {
	Connections []Connection `json:"connections"`
}

// A Connection is one connection of a socket between two requests.
type Connection struct {
	FD     uintptr            `json:"fd"`
	Worker bool               `json:"worker"` // it came by worker.sock
	Rest   protocol.Rest      `json:"rest"`   // what was read of the next request
	Again  []protocol.Request `json:"again"`  // that waited
}

// FDs are the descriptors of h.
func (h Handed) FDs() []uintptr {
	var out []uintptr
	for _, c := range h.Connections {
		out = append(out, c.FD)
	}
	return out
}

// Pause accepts and reads nothing more, has the requests that run finish and get their
// answers, and returns what another program needs to go on: requests that only wait
// are asked anew there. Channels are left to Channel.Handed. It is refused, unavailable,
// and everything goes on as before, where a request has not ended when ctx does.
func (s *Server) Pause(ctx context.Context, listeners ...*Listener) (Handed, error) {
	s.mu.Lock()
	s.paused = make(chan struct{})
	for l := range s.links {
		l.pause()
	}
	s.mu.Unlock()
	for _, l := range listeners {
		l.pause()
	}
	for l := s.unserved(); l != nil; l = s.unserved() {
		select {
		case <-l.served:
		case <-ctx.Done():
			s.Resume(listeners...)
			return Handed{}, refusal.New(refusal.Unavailable, "the connections cannot be passed on", "a request is still under way",
				"try again").Later()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Handed
	for l, as := range s.links {
		if as.kind == 0 || !l.parked() {
			continue
		}
		out.Connections = append(out.Connections, Connection{FD: descriptor.Of(l.conn), Worker: as.kind == worker, Rest: l.rest, Again: l.back})
	}
	return out, nil
}

// unserved is a link that has something left to do; nil = there is none.
func (s *Server) unserved() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		select {
		case <-l.served:
		default:
			return l
		}
	}
	return nil
}

// Resume ends Pause: everything is served as before.
func (s *Server) Resume(listeners ...*Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range listeners {
		l.resume()
	}
	close(s.paused)
	s.paused = nil
	for l, as := range s.links {
		ended := l.served
		select {
		case <-ended:
			s.resumeLocked(l, as, ended)
		default: // a request is still under way, and holds up nobody else
			s.serving.Go(func() {
				<-ended
				s.mu.Lock()
				defer s.mu.Unlock()
				s.resumeLocked(l, as, ended)
			})
		}
	}
}

// resumeLocked serves a link again that the serve which closed ended has parked, unless
// another pause has begun, or it is served again already.
func (s *Server) resumeLocked(l *link, as served, ended <-chan struct{}) {
	if s.paused == nil && l.served == ended && l.passOn {
		l.resume()
		s.startLocked(l, as)
	}
}

// Adopt serves what another program has passed on. Call it before Serve.
func (s *Server) Adopt(h Handed) {
	for _, c := range h.Connections {
		conn, err := takeConn(c.FD)
		if err != nil {
			s.log.Warn("connection lost", "err", err)
			continue
		}
		k := control
		if c.Worker {
			k = worker
		}
		s.greet(conn, k, c, true)
	}
}

func takeConn(fd uintptr) (*net.UnixConn, error) {
	f := os.NewFile(fd, "connection")
	defer f.Close() // FileConn makes its own
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("it is no socket of this machine"), conn.Close())
	}
	return local, nil
}

// whilePaused returns a channel that is closed when the pause ends; nil = there is none.
func (s *Server) whilePaused() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

// waitResumed waits for the end of a pause, if there is one, and reports whether the
// server goes on.
func (s *Server) waitResumed() bool {
	resumed := s.whilePaused()
	if resumed == nil {
		return s.stop.Err() == nil
	}
	select {
	case <-resumed:
		return true
	case <-s.stop.Done():
		return false
	}
}

// pause has serve return once what runs is done, with the connection open.
func (l *link) pause() {
	l.paused.Store(true)
	l.endWaits(errPassedOn)
	_ = l.conn.SetReadDeadline(time.Unix(1, 0))
}

// parked reports whether the link was paused and lives.
func (l *link) parked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused.Load() && !l.closed
}

// resume makes it ready to be served again.
func (l *link) resume() {
	l.paused.Store(false)
	_ = l.conn.SetReadDeadline(time.Time{})
	l.wait, l.endWaits = context.WithCancelCause(context.Background())
	l.spare.Store(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = make(chan struct{})
}

func (l *link) takeBack() []protocol.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.back
	l.back = nil
	return back
}

// passedOn reports whether a wait that has ended is to begin anew elsewhere.
func passedOn(wait context.Context) bool { return context.Cause(wait) == errPassedOn }

// untilPassedOn is in.run, which ends when the connection is about to be passed on.
func (in asking) untilPassedOn() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(in.run)
	stop := context.AfterFunc(in.wait, func() {
		if passedOn(in.wait) {
			cancel(errPassedOn)
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// untilNobodyAsks is in.run, which ends when whoever asks is gone, and not when the
// connection is about to be passed on: that waits for what is told here, or is refused.
func (in asking) untilNobodyAsks() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(in.run)
	stop := context.AfterFunc(in.wait, func() {
		if !passedOn(in.wait) {
			cancel(context.Cause(in.wait))
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// wish is do, an operator's wish for an actor: once it is told, it is waited for, by
// then wherever the connection is.
func (in asking) wish(method string, p protocol.ActorParams, do func(context.Context, string) error) (any, error) {
	ctx, done := in.untilPassedOn()
	defer done()
	err := do(ctx, p.Actor)
	if errors.Is(err, errPassedOn) {
		return nil, anew(method, p)
	}
	return protocol.Empty{}, err
}

// askAgain is the error of a request that is to be asked anew.
type askAgain struct{ req protocol.Request }

func (askAgain) Error() string { return "ask again" }

// anew is the error of a request whose wait has ended by passing on.
func anew(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("ask again: %w", err)
	}
	return askAgain{protocol.Request{JSONRPC: "2.0", Method: method, Params: raw}}
}

// A handedChannel is a worker's channel between two requests.
type handedChannel struct {
	Rest    protocol.Rest           `json:"rest"`
	Again   []protocol.Request      `json:"again"`
	Drained bool                    `json:"drained"`
	Notices []protocol.Notification `json:"notices"`
}

// Handed returns the channel's descriptor, and what another program needs to go on with it
// (Server.AdoptChannel). Call it while the server is paused. ok is false for a channel
// that has ended.
func (c *Channel) Handed() (fd uintptr, state json.RawMessage, ok bool) {
	if !c.link.parked() {
		return 0, nil, false
	}
	held := handedChannel{Rest: c.link.rest, Again: slices.Clone(c.link.back), Drained: c.drained.Err() != nil}
	for n := len(c.queue); n > 0; n-- {
		notice := <-c.queue
		held.Notices = append(held.Notices, *notice)
		select {
		case c.queue <- notice: // another pause may follow
		default: // a claim was lost meanwhile, and took the last place: nobody makes room now
		}
	}
	state, err := json.Marshal(held)
	return descriptor.Of(c.link.conn), state, err == nil
}

// AdoptChannel is Attach for a channel that another program has passed on.
func (s *Server) AdoptChannel(fd uintptr, state json.RawMessage, h fence.Holder) (*Channel, error) {
	var held handedChannel
	if err := json.Unmarshal(state, &held); err != nil {
		return nil, fmt.Errorf("take over a channel: %w", err)
	}
	conn, err := takeConn(fd)
	if err != nil {
		return nil, fmt.Errorf("take over a channel: %w", err)
	}
	return s.attach(conn, h, held), nil
}

// A HandedListener is what another program needs to go on listening.
type HandedListener struct {
	FD      uintptr `json:"fd"`
	Short   uintptr `json:"short,omitempty"`  // of the second socket
	Folder  string  `json:"folder,omitempty"` // that it is in; "" = there is none
	Control bool    `json:"control"`
}

// pause accepts nothing more. It returns once all that was accepted are among the links.
func (l *Listener) pause() {
	for _, socket := range l.sockets() {
		_ = socket.SetDeadline(time.Unix(1, 0))
	}
	l.accepting.Lock()
	defer l.accepting.Unlock()
}

// resume ends pause.
func (l *Listener) resume() {
	for _, socket := range l.sockets() {
		_ = socket.SetDeadline(time.Time{})
	}
}

// Handed describes the listener.
func (l *Listener) Handed() HandedListener {
	h := HandedListener{FD: descriptor.Of(l.conns), Control: l.kind == control}
	if l.short != nil {
		h.Short, h.Folder = descriptor.Of(l.short.conns), l.short.folder
	}
	return h
}

// FDs are the descriptors of h.
func (h HandedListener) FDs() []uintptr {
	if h.Folder == "" {
		return []uintptr{h.FD}
	}
	return []uintptr{h.FD, h.Short}
}

// AdoptListener goes on listening on a socket of the store in data. The descriptors of h
// stay open beside its own.
func AdoptListener(data string, h HandedListener) (_ *Listener, err error) {
	l := &Listener{kind: worker, file: socketFile(data, WorkerSocket)}
	if h.Control {
		l.kind, l.file = control, socketFile(data, ControlSocket)
	}
	if l.conns, err = takeListener(h.FD); err != nil {
		return nil, fmt.Errorf("go on listening on %s: %w", l.file, err)
	}
	if h.Folder != "" {
		short := &shortFolder{folder: h.Folder, record: socketFile(data, shortRecord)}
		if short.conns, err = takeListener(h.Short); err != nil {
			return nil, errors.Join(fmt.Errorf("go on listening on %s: %w", l.file, err), l.conns.Close())
		}
		l.short = short
	}
	if l.info, err = os.Lstat(l.file); err != nil {
		l.info = nil // it is gone: nothing is to be removed at the end
	}
	return l, nil
}

// takeListener leaves fd open.
func takeListener(fd uintptr) (*net.UnixListener, error) {
	own, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	f := os.NewFile(uintptr(own), "listener")
	defer f.Close() // FileListener makes its own
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	local, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(errors.New("it is no socket of this machine"), l.Close())
	}
	return local, nil
}
