package bolt

import (
	"bytes"
	"fmt"
	"runtime"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/store"
)

// snapshot is the state of the store after a batch: one bbolt transaction with its
// buckets at hand, and the tables that lie over it.
type snapshot struct {
	tx       *bbolt.Tx
	layers   *layers
	at       uint64 // the batch
	buckets  [256]*bbolt.Bucket
	cursors  [256]*bbolt.Cursor // for single keys, made when one is read
	known    [256]bool
	touched  []byte  // the spaces set in known, so that reset costs what was used
	recent   *recent // the leader's, nil for others
	counters *bbolt.Bucket
}

func (s *snapshot) reset() {
	for _, b := range s.touched {
		s.buckets[b], s.cursors[b], s.known[b] = nil, nil, false
	}
	s.touched = s.touched[:0]
	s.tx, s.counters, s.layers, s.at = nil, nil, nil, 0
}

// begin begins a transaction and points s at what it and the tables say. Every batch
// up to s.at is in the one or the others, and none after it is seen.
func (db *DB) begin(s *snapshot) error {
	for {
		l := db.layers.Load()
		tx, err := db.bolt.Begin(false)
		if err != nil {
			return err
		}
		s.at = db.visible.Load()
		// A batch that is stored without the log is in mailbox.db a moment before it
		// is visible.
		if d := db.direct.Load(); d != nil && tx.ID() >= d.tx {
			s.at = max(s.at, d.batch)
		}
		// If a checkpoint ended in between, its table may be missing in the one, and
		// its pages in the other.
		if db.layers.Load() == l {
			s.layers = l
			s.open(tx)
			return nil
		}
		if !rollback(tx) {
			db.giveUpBolt()
			return db.failure()
		}
	}
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
		s.known[space] = true
		s.touched = append(s.touched, space)
		s.buckets[space] = s.tx.Bucket([]byte{space})
	}
	return s.buckets[space]
}

// cursor returns a cursor for single keys of space, nil if there is no bucket. It keeps
// the room for its path, which Bucket.Get takes anew each time.
func (s *snapshot) cursor(space byte) *bbolt.Cursor {
	b := s.bucket(space)
	if b != nil && s.cursors[space] == nil {
		s.cursors[space] = b.Cursor()
	}
	return s.cursors[space]
}

// written returns what the tables say about key; false if they do not.
func (s *snapshot) written(pick func(*table) *index, key []byte) (value []byte, ok bool) {
	v := pick(s.layers.active).get(key, s.at)
	if v == nil && s.layers.frozen != nil {
		v = pick(s.layers.frozen).get(key, s.at)
	}
	if v == nil {
		return nil, false
	}
	return v.value, true
}

func keysOf(t *table) *index     { return t.keys }
func countersOf(t *table) *index { return t.counters }

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
	if value, ok := r.written(keysOf, key); ok {
		return value
	}
	if r.recent == nil {
		return r.stored(key)
	}
	value, ok := r.recent.get(r.tx.ID(), key)
	if !ok {
		value = r.stored(key)
		if r.err == nil {
			r.recent.put(key, value)
		}
	}
	return value
}

// stored returns what mailbox.db holds under key.
func (r *reader) stored(key []byte) []byte {
	defer r.guard()
	c := r.cursor(key[0])
	if c == nil {
		return nil
	}
	if k, v := c.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

func (r *reader) Sum(counter []byte) int64 {
	if !r.goodKey(counter) {
		return 0
	}
	return r.sum(counter)
}

func (r *reader) sum(counter []byte) int64 {
	defer r.guard()
	b, ok := r.written(countersOf, counter)
	if !ok {
		b = r.counters.Get(counter)
	}
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
	end := hi
	if end == nil && space < 255 {
		end = []byte{space + 1}
	}
	var c merged
	c.open(r, keysOf, func() *bbolt.Bucket { return r.bucket(space) }, lo, end, back)
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

// walkSums walks the counters that start with prefix, with the additions of over
// (which may be nil) laid over the snapshot.
func (r *reader) walkSums(prefix []byte, over *overlay, fn func(counter []byte, value int64) bool) {
	if r.err != nil {
		return
	}
	adds := over.additions(prefix)
	var c merged
	c.open(r, countersOf, func() *bbolt.Bucket { return r.counters }, prefix, after(prefix), false)
	for r.err == nil {
		var name []byte
		var sum int64
		switch {
		case len(adds) == 0 && c.key == nil:
			return
		case c.key == nil || len(adds) > 0 && bytes.Compare(adds[0].name, c.key) < 0:
			name, sum, adds = adds[0].name, adds[0].delta, adds[1:]
		default:
			v, err := decodeCounter(c.value)
			if err != nil {
				r.fail(damaged("read the store", err))
				return
			}
			name, sum = c.key, v
			if len(adds) > 0 && bytes.Equal(adds[0].name, c.key) {
				sum += adds[0].delta
				adds = adds[1:]
			}
			c.advance()
		}
		if sum != 0 && !fn(name, sum) {
			return
		}
	}
}

// after returns the least key that is greater than all that start with prefix, nil if
// there is none.
func after(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] < 255 {
			next := bytes.Clone(prefix[:n])
			next[n-1]++
			return next
		}
	}
	return nil
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
