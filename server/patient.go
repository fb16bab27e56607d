package server

import (
	"net"
	"syscall"
	"time"
)

// writeTimeout is how long a peer may take to make room for one answer. The
// answers of a peer that does not read are kept no longer.
const writeTimeout = 10 * time.Second

// patient writes to a connection and gives its peer a time to make room for each
// write. The clock runs only where there is no room at once, which is rare: a
// timer set for each answer, and left to go off on an idle connection, cost more
// than it was worth. It is used by one goroutine at a time.
type patient struct {
	conn    net.Conn
	timeout time.Duration
	raw     syscall.RawConn
	some    func(fd uintptr) (done bool) // p.writeSome: made once

	left   []byte // of the write under way
	waits  bool   // for room, with a deadline set
	failed error
}

// newPatient takes a connection of the operating system's; any other is given its
// time at each write.
func newPatient(conn net.Conn, timeout time.Duration) *patient {
	p := &patient{conn: conn, timeout: timeout}
	p.some = p.writeSome
	if c, ok := conn.(syscall.Conn); ok {
		p.raw, _ = c.SyscallConn()
	}
	return p
}

func (p *patient) Write(b []byte) (int, error) {
	if p.raw == nil {
		if err := p.conn.SetWriteDeadline(time.Now().Add(p.timeout)); err != nil {
			return 0, err
		}
		return p.conn.Write(b)
	}
	p.left, p.waits, p.failed = b, false, nil
	err := p.raw.Write(p.some)
	if err == nil {
		err = p.failed
	}
	if p.waits && err == nil {
		err = p.conn.SetWriteDeadline(time.Time{})
	}
	n := len(b) - len(p.left)
	p.left = nil
	return n, err
}

// writeSome writes what there is room for, and reports whether there is nothing to
// wait for: all is written, or it failed.
func (p *patient) writeSome(fd uintptr) bool {
	for len(p.left) > 0 {
		n, err := syscall.Write(int(fd), p.left)
		switch {
		case err == nil:
			p.left = p.left[n:]
		case err == syscall.EINTR:
		case err != syscall.EAGAIN:
			p.failed = err
			return true
		case !p.waits:
			p.waits = true
			if p.failed = p.conn.SetWriteDeadline(time.Now().Add(p.timeout)); p.failed != nil {
				return true
			}
			return false
		default:
			return false
		}
	}
	return true
}
