package server

import (
	"net"
	"time"
)

// The memory of unfinished lines is bounded by how many are read at once, and for
// how long: worker.sock may be reached by any user, who need not say who he is
// before the line ends. Who sends a long line while as many are under way waits;
// who does not finish one in time is disconnected.
const (
	maxLongLines        = 64 // of the supervisor's own user and root
	maxLongLinesOfOther = 8  // of all others together
	longLineTimeout     = 30 * time.Second
)

// longLines returns what protocol.Decoder.Long is for a connection.
func (s *Server) longLines(conn net.Conn, own bool) func() (over func()) {
	places := s.longOwn
	if !own {
		places = s.longOther
	}
	return func() (over func()) {
		timer := time.AfterFunc(longLineTimeout, func() { _ = conn.Close() })
		places <- struct{}{}
		return func() {
			timer.Stop()
			<-places
		}
	}
}
