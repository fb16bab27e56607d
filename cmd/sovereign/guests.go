package main

import (
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// guests bounds the connections of those who read metrics: anybody may be one of them who
// gets to the address, and an idle one takes a descriptor like any other.
type guests struct {
	leaving chan struct{} // has one for each that was turned away and still talks

	mu   sync.Mutex
	most int // mu guards
	now  int // mu guards
}

func newGuests() *guests { return &guests{leaving: make(chan struct{}, 4), most: math.MaxInt} }

// limit has at most n be served at one time. Those that are served already go on.
func (g *guests) limit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = n
}

// at is l, on which one for whom there is no room is told so and hung up on.
func (g *guests) at(l net.Listener) net.Listener { return guestListener{l, g} }

type guestListener struct {
	net.Listener
	guests *guests
}

// crowded is the whole answer to one for whom there is no room.
const crowded = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 10\r\n\r\n" +
	"there are too many connections: the limit of open files leaves no room for another\n"

func (l guestListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.guests.enter() {
			return &guest{Conn: conn, leave: sync.OnceFunc(l.guests.leave)}, nil
		}
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // its buffer is empty, and takes so little at once
		_, _ = io.WriteString(conn, crowded)
		l.guests.seeOut(conn)
	}
}

// seeOut closes conn, on which everything has been said. What is closed before all was
// read of it is reset, and a reset may come before the answer: a few at a time are listened
// to until they hang up, or conn's deadline. It delays nobody.
func (g *guests) seeOut(conn net.Conn) {
	select {
	case g.leaving <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	go func() { // ends by conn's deadline
		defer func() { _ = conn.Close(); <-g.leaving }()
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
}

func (g *guests) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now >= g.most {
		return false
	}
	g.now++
	return true
}

func (g *guests) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// A guest is a connection that makes room when it is closed.
type guest struct {
	net.Conn
	leave func()
}

func (c *guest) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
