package bolt

import (
	"bytes"
	"fmt"
	"runtime"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/store"
)

// snapshot is one bbolt transaction with its buckets at hand.
type snapshot struct {
	tx       *bbolt.Tx
	buckets  [256]*bbolt.Bucket
	known    [256]bool
	touched  []byte // the spaces set in known, so that reset costs what was used
	counters *bbolt.Bucket
}

func (s *snapshot) reset() {
	for _, b := range s.touched {
		s.buckets[b], s.known[b] = nil, false
	}
	s.touched = s.touched[:0]
	s.tx, s.counters = nil, nil
}

// open points s at tx.
func (s *snapshot) open(tx *bbolt.Tx) {
	s.tx = tx
	s.counters = tx.Bucket(countersName)
	if s.counters == nil {
		panic("the store has no bucket of counters")
	}
}

// bucket returns the bucket of space, nil if there is none.
func (s *snapshot) bucket(space byte) *bbolt.Bucket {
	if !s.known[space] {
		s.set(space, s.tx.Bucket([]byte{space}))
	}
	return s.buckets[space]
}

func (s *snapshot) set(space byte, b *bbolt.Bucket) {
	if !s.known[space] {
		s.known[space] = true
		s.touched = append(s.touched, space)
	}
	s.buckets[space] = b
}

// reader reads a snapshot and keeps the first thing that went wrong. After that
// it reads nothing more.
type reader struct {
	*snapshot
	err error
}

// guard turns a panic of bbolt on damaged pages, and a fault on pages that are
// not there, into the sticky error. It is deferred around calls of bbolt only,
// never around the caller's functions, whose panics are their own.
func (r *reader) guard() {
	if p := recover(); p != nil && r.err == nil {
		r.err = damaged("read the store", p)
	}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) goodKey(key []byte) bool {
	if len(key) == 0 || len(key) > store.MaxKey {
		r.fail(store.ErrBadKey)
	}
	return r.err == nil
}

func (r *reader) Get(key []byte) []byte {
	if !r.goodKey(key) {
		return nil
	}
	return r.get(key)
}

func (r *reader) get(key []byte) []byte {
	defer r.guard()
	b := r.bucket(key[0])
	if b == nil {
		return nil
	}
	return b.Get(key)
}

func (r *reader) Sum(counter []byte) int64 {
	if !r.goodKey(counter) {
		return 0
	}
	return r.sum(counter)
}

func (r *reader) sum(counter []byte) int64 {
	defer r.guard()
	b := r.counters.Get(counter)
	if b == nil {
		return 0
	}
	v, err := decodeCounter(b)
	if err != nil {
		panic(err)
	}
	return v
}

func (r *reader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	r.scan(from, to, false, nil, fn)
}

func (r *reader) ScanBack(from, to []byte, fn func(key, value []byte) bool) {
	r.scan(from, to, true, nil, fn)
}

func (r *reader) Sums(prefix []byte, fn func(counter []byte, value int64) bool) {
	r.walkSums(prefix, nil, fn)
}

// scan walks [from, to) over the spaces that it touches, in the order asked
// for, with the writes of over (which may be nil) laid over the snapshot.
func (r *reader) scan(from, to []byte, back bool, over *overlay, fn func(key, value []byte) bool) {
	if len(from) == 0 {
		r.fail(store.ErrBadKey)
	}
	if r.err != nil {
		return
	}
	first, last := int(from[0]), int(from[0])
	if to != nil {
		if bytes.Compare(from, to) >= 0 {
			return
		}
		last = int(to[0])
	}
	step, space, end := 1, first, last
	if back {
		step, space, end = -1, last, first
	}
	for ; ; space += step {
		lo, hi := []byte{byte(space)}, []byte(nil)
		if space == first {
			lo = from
		}
		if to != nil && space == last {
			hi = to
		}
		if !r.scanSpace(byte(space), lo, hi, back, over, fn) || space == end {
			return
		}
	}
}

// scanSpace is scan within one space; a nil hi is its end. It reports whether
// to go on.
func (r *reader) scanSpace(space byte, lo, hi []byte, back bool, over *overlay, fn func(key, value []byte) bool) bool {
	c := cursor{reader: r, lo: lo, hi: hi, back: back}
	c.open(space)
	w := over.between(space, lo, hi)
	for r.err == nil {
		if len(w) == 0 && c.key == nil {
			return true
		}
		if len(w) == 0 {
			key, value := c.key, c.value
			if !fn(key, value) {
				return false
			}
			c.advance()
			continue
		}
		at := 0
		if back {
			at = len(w) - 1
		}
		order := -1 // the write comes first
		if c.key != nil {
			order = bytes.Compare(w[at].key, c.key)
			if back {
				order = -order
			}
		}
		if order > 0 {
			if !fn(c.key, c.value) {
				return false
			}
			c.advance()
			continue
		}
		if order == 0 {
			c.advance()
		}
		write := w[at]
		if back {
			w = w[:at]
		} else {
			w = w[1:]
		}
		if write.value != nil && !fn(write.key, write.value) {
			return false
		}
	}
	return false
}

// cursor walks the keys of one bucket in [lo, hi). key is nil at the end.
//
// It works around two traps of bbolt 1.5.0's cursor, which both need a leaf that
// this very transaction emptied: Prev stops there as if at the beginning, and
// Last never returns where all leaves are empty.
type cursor struct {
	*reader
	c      *bbolt.Cursor
	lo, hi []byte
	back   bool

	key, value []byte
}

func (c *cursor) open(space byte) {
	defer c.guard()
	b := c.bucket(space)
	if b == nil {
		return
	}
	c.c = b.Cursor()
	if !c.back {
		c.set(c.c.Seek(c.lo))
		return
	}
	if c.hi != nil {
		if k, _ := c.c.Seek(c.hi); k != nil {
			c.previous(c.hi)
			return
		}
	}
	if k, _ := c.c.First(); k == nil {
		return
	}
	c.set(c.c.Last())
}

func (c *cursor) advance() {
	defer c.guard()
	if c.back {
		c.previous(c.key)
		return
	}
	c.set(c.c.Next())
}

// previous moves to the last key before bound, below which the cursor stands.
func (c *cursor) previous(bound []byte) {
	k, v := c.c.Prev()
	if k == nil {
		first, _ := c.c.Bucket().Cursor().First()
		if first == nil || bytes.Compare(first, bound) >= 0 {
			c.set(nil, nil)
			return
		}
		// There is a key before bound, so this was an emptied leaf: go on.
		for k == nil {
			k, v = c.c.Prev()
		}
	}
	c.set(k, v)
}

// set makes k the current key, if it lies within the bounds.
func (c *cursor) set(k, v []byte) {
	c.key, c.value = nil, nil
	if k == nil || c.back && bytes.Compare(k, c.lo) < 0 || !c.back && c.hi != nil && bytes.Compare(k, c.hi) >= 0 {
		return
	}
	if v == nil {
		// Only a bucket has no value, and a space holds none.
		panic("a bucket lies where a value belongs")
	}
	c.key, c.value = k, v
}

// walkSums walks the counters that start with prefix, with the additions of over
// (which may be nil) laid over the snapshot.
func (r *reader) walkSums(prefix []byte, over *overlay, fn func(counter []byte, value int64) bool) {
	adds := over.additions(prefix)
	var c *bbolt.Cursor
	var key, value []byte
	move := func(step func() ([]byte, []byte)) {
		defer r.guard()
		key, value = step()
		if key != nil && !bytes.HasPrefix(key, prefix) {
			key = nil
		}
	}
	if r.err != nil {
		return
	}
	move(func() ([]byte, []byte) {
		c = r.counters.Cursor()
		return c.Seek(prefix)
	})
	for r.err == nil {
		var name []byte
		var sum int64
		switch {
		case len(adds) == 0 && key == nil:
			return
		case key == nil || len(adds) > 0 && bytes.Compare(adds[0].name, key) < 0:
			name, sum, adds = adds[0].name, adds[0].delta, adds[1:]
		default:
			v, err := decodeCounter(value)
			if err != nil {
				r.fail(damaged("read the store", err))
				return
			}
			name, sum = key, v
			if len(adds) > 0 && bytes.Equal(adds[0].name, key) {
				sum += adds[0].delta
				adds = adds[1:]
			}
			move(c.Next)
		}
		if sum != 0 && !fn(name, sum) {
			return
		}
	}
}

// isFault reports whether a panic's value is that of a memory fault, which
// debug.SetPanicOnFault made of a signal.
func isFault(p any) bool {
	_, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok
}

// damaged is the refusal for what bbolt did on a damaged file.
func damaged(doing string, p any) error {
	cause, ok := p.(error)
	if !ok {
		cause = fmt.Errorf("%v", p)
	}
	return corruptRefusal(doing, "a page of mailbox.db is damaged: "+cause.Error()).Because(cause)
}
