package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/sovereign-run/sovereign/store/wal"
)

// A record of the log is one batch. Its number is the batch's. Behind the header:
//
//	2 bytes, length of the state record, and that (key.go)
//	for each key that the batch wrote, once:
//	  varint  length of the key × 4 + kind
//	  key
//	  varint  length of the value, and the value; not where it was deleted
//
// The head of a log file holds a name and version, store id, and generation. Version 1
// does not say that both files were begun before mailbox.db named this one.
const (
	entryDeleted = 1
	entryCounter = 2
	entryBits    = 2

	headMagic = "sovlog2\n"
	headFirst = "sovlog1\n"
	headLen   = wal.HeaderLen + len(headMagic) + idSize + 8
)

var errBadEntry = errors.New("a record of the log holds something else than a commit")

// encodeRecord appends the record of what out has written to b, which is empty.
func encodeRecord(b, state []byte, out *written) []byte {
	b = append(b, make([]byte, wal.HeaderLen)...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(state)))
	b = append(b, state...)
	for _, n := range out.keys {
		b = appendEntry(b, n, 0)
	}
	for _, n := range out.counters {
		b = appendEntry(b, n, entryCounter)
	}
	return b
}

func appendEntry(b []byte, n *node, kind uint64) []byte {
	value := n.newest.Load().value
	if value == nil {
		kind |= entryDeleted
	}
	b = binary.AppendUvarint(b, uint64(len(n.key))<<entryBits|kind)
	b = append(b, n.key...)
	if value != nil {
		b = binary.AppendUvarint(b, uint64(len(value)))
		b = append(b, value...)
	}
	return b
}

// decodeRecord makes what lies behind a record's header part of t, as batch, and t
// keeps it. After an error t is as it was.
func decodeRecord(b []byte, t *table, batch uint64) (state, error) {
	if len(b) < 2 {
		return state{}, errBadEntry
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; n > len(b) {
		return state{}, errBadEntry
	}
	s, err := decodeState(b[:n])
	if err != nil {
		return state{}, err
	}
	type entry struct {
		key, value []byte
		counter    bool
	}
	var entries []entry
	record, d := b[:n:n], decoder{b[n:]}
	for len(d.rest) > 0 {
		head := d.number()
		key := d.take(head >> entryBits)
		if len(key) == 0 {
			return state{}, errBadEntry
		}
		var value []byte
		if head&entryDeleted == 0 {
			if value = d.take(d.number()); value == nil {
				return state{}, errBadEntry
			}
		}
		entries = append(entries, entry{key, value, head&entryCounter != 0})
	}
	t.states.put(batch, stateKey, record, nil)
	for _, e := range entries {
		if e.counter {
			t.counters.put(batch, e.key, e.value, nil)
		} else {
			t.keys.put(batch, e.key, e.value, nil)
		}
	}
	return s, nil
}

// decoder takes a record apart.
type decoder struct{ rest []byte }

// number returns the varint at the front; where there is none, one that is too large
// to be a length.
func (d *decoder) number() uint64 {
	n, used := binary.Uvarint(d.rest)
	if used <= 0 {
		return math.MaxUint64
	}
	d.rest = d.rest[used:]
	return n
}

// take returns the next n bytes; nil if there are not so many.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	return p
}

// encodeHead returns the head of a log file of the store that s is of.
func encodeHead(s *state) []byte {
	b := make([]byte, wal.HeaderLen, headLen)
	b = append(b, headMagic...)
	b = append(b, s.id[:]...)
	return binary.BigEndian.AppendUint64(b, s.generation)
}

// headFits reports whether b is the head of a log file of the opening that s is of.
func headFits(b []byte, s state) bool {
	want := encodeHead(&s)[wal.HeaderLen:]
	return string(b) == string(want) || bytes.HasPrefix(b, []byte(headFirst)) && string(b[len(headFirst):]) == string(want[len(headMagic):])
}

// bothBegun reports whether the head b, which fits, says that the other file was begun as
// well before mailbox.db named its own.
func bothBegun(b []byte) bool { return bytes.HasPrefix(b, []byte(headMagic)) }
