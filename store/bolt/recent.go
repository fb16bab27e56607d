package bolt

import "bytes"

// recent is what the leader has read from mailbox.db of late, as one transaction of
// bbolt has left it: the lease of a worker is looked at twice for each message. Tables
// are looked at before it, as they are before mailbox.db. Its zero value knows nothing.
type recent struct {
	tx     int // its number; what another one has left is not known
	values map[string][]byte
}

const (
	recentMost  = 512 // keys
	recentSmall = 128 // bytes of a value; larger ones are not kept
)

// get returns what transaction tx has left under key, if that is known.
func (c *recent) get(tx int, key []byte) (value []byte, ok bool) {
	if c.tx != tx {
		c.tx, c.values = tx, nil
	}
	value, ok = c.values[string(key)]
	return value, ok
}

// put remembers the value of a key that get did not know.
func (c *recent) put(key, value []byte) {
	if value == nil || len(value) > recentSmall {
		return
	}
	if c.values == nil || len(c.values) >= recentMost {
		c.values = make(map[string][]byte)
	}
	c.values[string(key)] = bytes.Clone(value)
}
