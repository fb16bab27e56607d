package bolt

import (
	"bytes"
	"hash/crc32"
)

// recent is what the leader has read from mailbox.db of late, as one transaction of
// bbolt has left it: the lease of a worker is looked at twice for each message. Tables
// are looked at before it, as they are before mailbox.db. Its zero value knows nothing.
type recent struct {
	tx     int // its number; what another one has left is not known
	values map[string][]byte
	once   [recentMost]uint32 // sums of keys that were asked for, whatever the transaction
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

// put remembers the value of a key that get did not know, and that was asked for before:
// most keys are read once, to be written.
func (c *recent) put(key, value []byte) {
	if value == nil || len(value) > recentSmall {
		return
	}
	sum := crc32.Checksum(key, castagnoli)
	if known := &c.once[sum%recentMost]; *known != sum {
		*known = sum
		return
	}
	if c.values == nil || len(c.values) >= recentMost {
		c.values = make(map[string][]byte)
	}
	c.values[string(key)] = bytes.Clone(value)
}
