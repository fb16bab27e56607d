package server

// A share is what part of the room for connections somebody may take. Together they are
// bounded so that those who connect, and say nothing, cannot use up the descriptors that
// processes are started with.
//
// Who finds no room is turned away: to end an idle connection instead would also end that
// of a worker which waits for work.
type share struct {
	worker bool // it came by worker.sock
	own    bool // it is root's, or of the supervisor's own user
}

// taken counts connections.
type taken struct {
	all     int
	workers int // of all, those by worker.sock
	others  int // of workers, those that are not own
}

func (t *taken) add(s share, n int) {
	t.all += n
	if s.worker {
		t.workers += n
		if !s.own {
			t.others += n
		}
	}
}

// fits reports whether there is room for one more of s, of n in all: a quarter is kept for
// control.sock, and others have half at most.
func (t *taken) fits(n int, s share) bool {
	switch {
	case t.all >= n:
		return false
	case s.worker && t.workers >= n-n/4:
		return false
	default:
		return s.own || t.others < n/2
	}
}

// Limit has at most n connections of both sockets be served at one time, besides the
// channels of workers. Of n a quarter is kept for control.sock, and users other than root
// and the supervisor's own have half at most. Who finds no room gets one line, unavailable,
// and is hung up on. Until Limit is called there is no such bound; what is served already
// goes on, as does what another program has passed on.
func (s *Server) Limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = n
}
