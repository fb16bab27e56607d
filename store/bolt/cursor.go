package bolt

import (
	"bytes"

	bbolt "go.etcd.io/bbolt"
)

// merged walks the keys in [lo, hi) of a bucket and of what lies over it in the
// tables, newest first in the order of layers. key is nil at the end.
type merged struct {
	*reader
	tables [2]tableCursor
	base   bucketCursor

	key, value []byte
}

// open starts the walk. pick chooses the index of a table, nil hi bounds nothing, and
// b may be nil.
func (m *merged) open(r *reader, pick func(*table) *index, b func() *bbolt.Bucket, lo, hi []byte, back bool) {
	m.reader = r
	for i, t := range []*table{r.layers.active, r.layers.frozen} {
		if t != nil {
			m.tables[i].open(pick(t), r.at, lo, hi, back)
		}
	}
	m.base = bucketCursor{lo: lo, hi: hi, back: back}
	func() {
		defer m.guard()
		m.base.open(b())
	}()
	m.settle()
}

// settle makes the first key of all its own, skipping what is deleted.
func (m *merged) settle() {
	for m.err == nil {
		m.key, m.value = m.base.key, m.base.value
		for i := len(m.tables) - 1; i >= 0; i-- {
			t := &m.tables[i]
			if t.key == nil {
				continue
			}
			order := -1
			if m.key != nil {
				order = bytes.Compare(t.key, m.key)
				if m.base.back {
					order = -order
				}
			}
			if order <= 0 { // the same key: the newer one counts
				m.key, m.value = t.key, t.value
			}
		}
		if m.key == nil || m.value != nil {
			return
		}
		m.pass()
	}
	m.key, m.value = nil, nil
}

// pass moves everything that stands at the present key on.
func (m *merged) pass() {
	key := m.key
	for i := range m.tables {
		if t := &m.tables[i]; t.key != nil && bytes.Equal(t.key, key) {
			t.advance()
		}
	}
	if m.base.key != nil && bytes.Equal(m.base.key, key) {
		defer m.guard()
		m.base.advance()
	}
}

func (m *merged) advance() {
	m.pass()
	m.settle()
}

// tableCursor walks the keys of an index in [lo, hi), as they are after a batch. A
// deleted key has a nil value. key is nil at the end.
type tableCursor struct {
	index  *index
	node   *node
	batch  uint64
	lo, hi []byte
	back   bool

	key, value []byte
}

func (c *tableCursor) open(x *index, batch uint64, lo, hi []byte, back bool) {
	*c = tableCursor{index: x, batch: batch, lo: lo, hi: hi, back: back}
	if back {
		c.node = x.below(hi)
	} else {
		c.node = x.seek(lo)
	}
	c.find()
}

func (c *tableCursor) advance() {
	c.step()
	c.find()
}

func (c *tableCursor) step() {
	if c.back {
		c.node = c.index.below(c.node.key)
	} else {
		c.node = c.node.next[0].Load()
	}
}

// find goes on to a node that the batch sees.
func (c *tableCursor) find() {
	c.key, c.value = nil, nil
	for ; c.node != nil; c.step() {
		if c.back && bytes.Compare(c.node.key, c.lo) < 0 || !c.back && c.hi != nil && bytes.Compare(c.node.key, c.hi) >= 0 {
			c.node = nil
			return
		}
		if v := c.node.at(c.batch); v != nil {
			c.key, c.value = c.node.key, v.value
			return
		}
	}
}

// bucketCursor walks the keys of one bucket in [lo, hi). key is nil at the end. It
// panics where bbolt does.
type bucketCursor struct {
	c      *bbolt.Cursor
	lo, hi []byte
	back   bool

	key, value []byte
}

func (c *bucketCursor) open(b *bbolt.Bucket) {
	if b == nil {
		return
	}
	c.c = b.Cursor()
	switch {
	case !c.back:
		c.set(c.c.Seek(c.lo))
	case c.hi == nil:
		c.set(c.c.Last())
	default:
		if k, _ := c.c.Seek(c.hi); k != nil {
			c.set(c.c.Prev())
		} else {
			c.set(c.c.Last())
		}
	}
}

func (c *bucketCursor) advance() {
	if c.back {
		c.set(c.c.Prev())
	} else {
		c.set(c.c.Next())
	}
}

// set makes k the current key, if it lies within the bounds.
func (c *bucketCursor) set(k, v []byte) {
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
