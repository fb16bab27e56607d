package bolt

import (
	bbolt "go.etcd.io/bbolt"
)

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

// add adds a to its counter, reading it from bucket the first time. It panics
// where the stored value is damaged.
func (s *sums) add(bucket *bbolt.Bucket, a addition) {
	i, ok := s.index[string(a.name)]
	if !ok {
		var value int64
		if b := bucket.Get(a.name); b != nil {
			v, err := decodeCounter(b)
			if err != nil {
				panic(err)
			}
			value = v
		}
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

// flush writes what changed into bucket. A counter at 0 has no entry.
func (s *sums) flush(bucket *bbolt.Bucket) error {
	for i := range s.list {
		c := &s.list[i]
		if c.flushed {
			continue
		}
		var err error
		if c.value == 0 {
			err = bucket.Delete([]byte(c.name))
		} else {
			err = bucket.Put([]byte(c.name), encodeCounter(c.value))
		}
		if err != nil {
			return err
		}
		c.flushed = true
	}
	return nil
}
