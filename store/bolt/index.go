package bolt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// index is an ordered map from keys to their values after each batch: a skip list,
// with the versions of a key in a list of their own. One goroutine writes, any
// number read at the same time, without locks: a reader names the batch whose state
// it wants, and what later batches write lies beside it unseen.
//
// Nothing is ever removed but by undo: an index lives until all of it is in
// mailbox.db, and goes as a whole.
type index struct {
	first  node
	height atomic.Int32 // levels in use, less one

	// Rooms that nodes and versions are cut from, the writer's.
	nodes    []node
	versions []version
	links    []atomic.Pointer[node]
}

const maxHeight = 12 // of which each level has a quarter of the one below

// A node is a key. Its links are those of its levels.
type node struct {
	head   uint64 // of key
	key    []byte
	newest atomic.Pointer[version] // nil: no batch that counts has written it
	next   []atomic.Pointer[node]
}

// A version is what a batch has made of a key.
type version struct {
	batch uint64
	value []byte // nil: deleted
	older *version
}

func newIndex() *index {
	x := new(index)
	x.first.next = make([]atomic.Pointer[node], maxHeight)
	return x
}

// at returns what the key is after batch; nil if no batch up to it has written it.
func (n *node) at(batch uint64) *version {
	v := n.newest.Load()
	for v != nil && v.batch > batch {
		v = v.older
	}
	return v
}

// frontOf returns the first bytes of key, as a number that is less where they are. Keys
// with one head may differ behind it.
func frontOf(key []byte) (head uint64) {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	for i, b := range key {
		head |= uint64(b) << (56 - 8*i)
	}
	return head
}

// less reports whether n's key is less than key, which head is of. Mostly the heads
// tell, and the key, which lies elsewhere, need not be looked at.
func (n *node) less(head uint64, key []byte) bool {
	return n.head < head || n.head == head && bytes.Compare(n.key, key) < 0
}

// before returns the last node whose key is less than key on each level, the first
// node where there is none.
func (x *index) before(key []byte, path *[maxHeight]*node) *node {
	at, head := &x.first, frontOf(key)
	var met *node // is not less than key, as the level above has found
	for level := int(x.height.Load()); level >= 0; level-- {
		for {
			next := at.next[level].Load()
			if next == nil || next == met {
				break
			}
			if !next.less(head, key) {
				met = next
				break
			}
			at = next
		}
		if path != nil {
			path[level] = at
		}
	}
	return at
}

// seek returns the first node that is not less than key, nil if there is none.
func (x *index) seek(key []byte) *node { return x.before(key, nil).upTo(key) }

// upTo returns the first node behind n that is not less than key, nil if there is none:
// where n came from before, the next one, unless others were put in between since.
func (n *node) upTo(key []byte) *node {
	head := frontOf(key)
	for n = n.next[0].Load(); n != nil && n.less(head, key); n = n.next[0].Load() {
	}
	return n
}

// below returns the last node that is less than key, which may be nil for no bound;
// nil if there is none.
func (x *index) below(key []byte) *node {
	at := &x.first
	if key != nil {
		at = x.before(key, nil)
	} else {
		for level := int(x.height.Load()); level >= 0; level-- {
			for next := at.next[level].Load(); next != nil; next = at.next[level].Load() {
				at = next
			}
		}
	}
	if at == &x.first {
		return nil
	}
	return at
}

// get returns what key is after batch; nil if no batch up to it has written it.
func (x *index) get(key []byte, batch uint64) *version {
	n := x.seek(key)
	if n == nil || !bytes.Equal(n.key, key) {
		return nil
	}
	return n.at(batch)
}

// put makes value what key is after batch, which is not less than any before; nil is
// a deletion. It keeps value, and a copy of key from s; nil: key itself. If the batch
// writes key for the first time it returns its node, for undo.
func (x *index) put(batch uint64, key, value []byte, s *slab) *node {
	var path [maxHeight]*node
	at := x.before(key, &path).next[0].Load()
	if at == nil || !bytes.Equal(at.key, key) {
		if s != nil {
			key = s.keep(key)
		}
		at = x.insert(key, &path)
	}
	older := at.newest.Load()
	fresh := older == nil || older.batch < batch
	if !fresh {
		older = older.older
	}
	if len(x.versions) == 0 {
		x.versions = make([]version, 64)
	}
	v := &x.versions[0]
	x.versions = x.versions[1:]
	v.batch, v.value, v.older = batch, value, older
	at.newest.Store(v)
	if fresh {
		return at
	}
	return nil
}

func (x *index) insert(key []byte, path *[maxHeight]*node) *node {
	height := min(bits.TrailingZeros64(rand.Uint64())/2, maxHeight-1)
	for level := int(x.height.Load()) + 1; level <= height; level++ {
		path[level] = &x.first
		x.height.Store(int32(level)) // readers find nothing there yet, and go down
	}
	if len(x.nodes) == 0 {
		x.nodes = make([]node, 64)
	}
	if len(x.links) <= height {
		x.links = make([]atomic.Pointer[node], 128)
	}
	n := &x.nodes[0]
	x.nodes = x.nodes[1:]
	n.head, n.key, n.next = frontOf(key), key, x.links[:height+1:height+1]
	x.links = x.links[height+1:]
	// From below: who finds it on a level finds it on all below.
	for level := range n.next {
		n.next[level].Store(path[level].next[level].Load())
		path[level].next[level].Store(n)
	}
	return n
}

// undo takes back what batch, the newest, has made of n's key.
func (n *node) undo(batch uint64) {
	if v := n.newest.Load(); v != nil && v.batch == batch {
		n.newest.Store(v.older)
	}
}

// since calls fn, in order, for each key that batches after from, up to to, have
// written, with its value after to, until fn fails.
func (x *index) since(from, to uint64, fn func(key, value []byte) error) error {
	for n := x.first.next[0].Load(); n != nil; n = n.next[0].Load() {
		if v := n.at(to); v != nil && v.batch > from {
			if err := fn(n.key, v.value); err != nil {
				return err
			}
		}
	}
	return nil
}
