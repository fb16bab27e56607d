package bolt

// slab is room for many small things that live and go together: one object of the
// heap instead of one for each. Its zero value is ready.
type slab struct{ room []byte }

const (
	slabSize  = 16 << 10
	slabSmall = 512 // values up to it are copied; larger ones stay where they are
)

// keep returns a copy of p.
func (s *slab) keep(p []byte) []byte {
	if s.room == nil || len(p) > cap(s.room)-len(s.room) {
		if len(p) > slabSmall {
			return append(make([]byte, 0, len(p)), p...)
		}
		s.room = make([]byte, 0, slabSize)
	}
	n := len(s.room)
	s.room = append(s.room, p...)
	return s.room[n:len(s.room):len(s.room)]
}

// small returns a copy of p if it is small, else p itself. nil stays nil.
func (s *slab) small(p []byte) []byte {
	if p == nil || len(p) > slabSmall {
		return p
	}
	return s.keep(p)
}
