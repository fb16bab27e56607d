package bolt

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/store"
)

// overlay holds what one function has written, until it is known whether the
// function keeps it. A nil overlay is an empty one.
type overlay struct {
	writes []write    // ordered by key, one a key
	adds   []addition // ordered by name, one a name
	ops    int
	bytes  int
}

// A write of a nil value is a deletion.
type write struct{ key, value []byte }

type addition struct {
	name  []byte
	delta int64
}

func (o *overlay) reset() {
	clear(o.writes)
	clear(o.adds)
	o.writes, o.adds = o.writes[:0], o.adds[:0]
	o.ops, o.bytes = 0, 0
}

func (o *overlay) find(key []byte) (int, bool) {
	// Keys mostly come in order.
	if n := len(o.writes); n == 0 || bytes.Compare(o.writes[n-1].key, key) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(o.writes, key, func(w write, k []byte) int { return bytes.Compare(w.key, k) })
}

func (o *overlay) put(key, value []byte) {
	i, ok := o.find(key)
	if ok {
		o.writes[i].value = value
		return
	}
	o.writes = slices.Insert(o.writes, i, write{key, value})
}

// between returns the writes in [lo, hi) of one space; a nil hi is its end.
func (o *overlay) between(space byte, lo, hi []byte) []write {
	if o == nil || len(o.writes) == 0 {
		return nil
	}
	i, _ := o.find(lo)
	j := len(o.writes)
	switch {
	case hi != nil:
		j, _ = o.find(hi)
	case space < 255:
		j, _ = o.find([]byte{space + 1})
	}
	return o.writes[i:j]
}

func (o *overlay) add(name []byte, delta int64) {
	i, ok := o.findSum(name)
	if ok {
		o.adds[i].delta += delta
		return
	}
	o.adds = slices.Insert(o.adds, i, addition{name, delta})
}

func (o *overlay) findSum(name []byte) (int, bool) {
	return slices.BinarySearchFunc(o.adds, name, func(a addition, k []byte) int { return bytes.Compare(a.name, k) })
}

// additions returns those to counters that start with prefix.
func (o *overlay) additions(prefix []byte) []addition {
	if o == nil {
		return nil
	}
	i, _ := o.findSum(prefix)
	j := i
	for j < len(o.adds) && bytes.HasPrefix(o.adds[j].name, prefix) {
		j++
	}
	return o.adds[i:j]
}

// tx is the Tx of one function: an overlay over the batch's snapshot, which sees
// what the functions before it wrote.
type tx struct {
	reader
	overlay
	state *state // the store's, which only the leader touches
	sums  *sums  // the batch's counters
	out   *written
	dirty bool // a number was given, so that the batch must be committed
	async bool // it need not be durable when it is answered
}

var _ store.Tx = (*tx)(nil)

// Asynchronous implements store.Tx.
func (t *tx) Asynchronous() { t.async = true }

func (t *tx) charge(bytes int) bool {
	t.ops++
	t.bytes += bytes
	if t.ops > store.MaxOps || t.bytes > store.MaxBytes {
		t.fail(fmt.Errorf("update the store: %w: %d operations of %d, %d bytes of %d",
			store.ErrTooLarge, t.ops, store.MaxOps, t.bytes, store.MaxBytes))
	}
	return t.err == nil
}

func (t *tx) Get(key []byte) []byte {
	if !t.goodKey(key) {
		return nil
	}
	if i, ok := t.find(key); ok {
		return t.writes[i].value
	}
	return t.get(key)
}

func (t *tx) Sum(counter []byte) int64 {
	if !t.goodKey(counter) {
		return 0
	}
	sum, ok := t.sums.get(counter)
	if !ok {
		sum = t.sum(counter)
	}
	if i, ok := t.findSum(counter); ok {
		sum += t.adds[i].delta
	}
	return sum
}

func (t *tx) Scan(from, to []byte, fn func(key, value []byte) bool) {
	t.scan(from, to, false, &t.overlay, fn)
}

func (t *tx) ScanBack(from, to []byte, fn func(key, value []byte) bool) {
	t.scan(from, to, true, &t.overlay, fn)
}

func (t *tx) Sums(prefix []byte, fn func(counter []byte, value int64) bool) {
	t.sums.flush(t.out.putCounter)
	t.walkSums(prefix, &t.overlay, fn)
}

func (t *tx) Put(key, value []byte) {
	if !t.goodKey(key) || !t.charge(len(key)+len(value)) {
		return
	}
	if value == nil {
		value = []byte{}
	}
	t.put(key, value)
}

func (t *tx) Delete(key []byte) {
	if t.goodKey(key) && t.charge(len(key)) {
		t.put(key, nil)
	}
}

func (t *tx) Add(counter []byte, delta int64) {
	if t.goodKey(counter) && t.charge(len(counter)) {
		t.add(counter, delta)
	}
}

func (t *tx) Mint(string) uint64 {
	if !t.charge(0) {
		return 0
	}
	return t.next(&t.state.token)
}

func (t *tx) Next() uint64 {
	if t.err != nil {
		return 0
	}
	return t.next(&t.state.sequence)
}

func (t *tx) Append(space byte, value []byte) uint64 {
	if !t.charge(9 + len(value)) {
		return 0
	}
	n := t.next(t.state.last(space))
	if n == 0 {
		return 0
	}
	if value == nil {
		value = []byte{}
	}
	t.put(appendKey(space, n), value)
	return n
}

// next gives the number after *last. Numbers of functions that fail are not
// given again: a gap is cheaper than a rule about when that is safe.
func (t *tx) next(last *uint64) uint64 {
	if *last >= maxNumber {
		t.fail(fmt.Errorf("update the store: the numbers below 2^53 are used up"))
		return 0
	}
	*last++
	t.dirty = true
	return *last
}
