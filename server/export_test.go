package server

import (
	"io"
	"net"
	"time"
)

// ResumeFirst ends a pause that was refused: it serves what was still under way again,
// once free has let that end, before the goroutines that served it come to anything.
func (s *Server) ResumeFirst(free func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free()
	for l, as := range s.links {
		ended := l.served
		<-ended
		s.resumeLocked(l, as, ended)
	}
}

// NewPatient is how a link writes to its connection.
func NewPatient(conn net.Conn, timeout time.Duration) io.Writer { return newPatient(conn, timeout) }

// CloseWithin is Close with another time than half a second for what was written before.
func (c *Channel) CloseWithin(grace time.Duration) { c.closeWithin(grace) }

// Supervised has c ask s.
func (c *Control) Supervised(s Supervisor) { c.supervisor = s }

// Links are the connections and channels that are served, or wait to be passed on.
func (s *Server) Links() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}
