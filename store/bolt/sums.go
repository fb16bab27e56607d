package bolt

// sums folds the additions of a batch, so that each counter is read and written
// once however many functions add to it.
type sums struct {
	index map[string]int
	list  []sum
}

type sum struct {
	name    string
	value   int64
	flushed bool // the bucket holds value
}

func (s *sums) reset() {
	clear(s.index)
	clear(s.list)
	s.list = s.list[:0]
}

// get returns a counter that this batch has changed.
func (s *sums) get(name []byte) (int64, bool) {
	i, ok := s.index[string(name)]
	if !ok {
		return 0, false
	}
	return s.list[i].value, true
}

// add adds a to its counter, which it reads with stored the first time.
func (s *sums) add(stored func(name []byte) int64, a addition) {
	i, ok := s.index[string(a.name)]
	if !ok {
		value := stored(a.name)
		if s.index == nil {
			s.index = make(map[string]int)
		}
		i = len(s.list)
		name := string(a.name)
		s.index[name] = i
		s.list = append(s.list, sum{name: name, value: value})
	}
	s.list[i].value += a.delta
	s.list[i].flushed = false
}

// flush writes what changed with put. A counter at 0 has no entry.
func (s *sums) flush(put func(name, value []byte)) {
	for i := range s.list {
		c := &s.list[i]
		if c.flushed {
			continue
		}
		if c.value == 0 {
			put([]byte(c.name), nil)
		} else {
			put([]byte(c.name), encodeCounter(c.value))
		}
		c.flushed = true
	}
}
