package bolt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
)

// The layout of mailbox.db. Everything of ours is big-endian, so that byte order
// is number order.
//
//	bucket "meta"
//	  "state" ─ the state record below, rewritten by every commit
//	bucket "counters"
//	  counter name ─ 8 bytes, two's complement; a counter at 0 has no entry
//	bucket of one byte: a space, the first byte of the keys in it
//	  key ─ value, both as given to Tx.Put
//
// The state record:
//
//	offset  bytes
//	     0      4  schema version
//	     4     16  store id, random, given when the store was created
//	    20      8  epoch
//	    28      8  generation: how many times the store was opened for writing
//	    36      8  batch: how many commits this store has seen
//	    44      8  last token given
//	    52      8  last number of the send sequence given
//	    60      8  lease clock: last instant, ns
//	    68      8  lease clock: instant minus monotonic clock, ns
//	    76     16  lease clock: identity of the boot that the offset holds for
//	    92      8  log: the salt of the log file in which the batches after this one
//	               are; 0: none is. Schema 1 has no such field, and no log
//	   100      2  n, the spaces that Append was used on
//	   102    9*n  space, last number given in it
//	   end      4  CRC-32C of all before
//
// Schema 3 is laid out as schema 2. It has keys that are of use only where every one is
// there (docs/storage.md, space q), and a program for schema 2 does not write them.
//
// Every later schema keeps the version first and the checksum last, so that an
// older program can tell a newer store from a damaged one.
var (
	metaBucket    = []byte("meta")
	countersName  = []byte("counters")
	stateKey      = []byte("state")
	castagnoli    = crc32.MakeTable(crc32.Castagnoli)
	errBadRecord  = errors.New("the store's own record is damaged")
	errBadCounter = errors.New("a counter's value is damaged")
)

const (
	schemaVersion = 3
	stateFixed    = 94 // in schema 1; the log is not in it
	idSize        = 16

	// Numbers are epoch<<epochShift plus a count. maxNumber is what a JSON
	// number carries exactly.
	epochShift = 33
	maxNumber  = 1<<53 - 1
)

// state is the state record: what all transactions of a store share.
type state struct {
	schema     uint32
	id         [idSize]byte
	epoch      uint64
	generation uint64
	batch      uint64
	token      uint64
	sequence   uint64
	instant    int64
	offset     int64
	boot       [idSize]byte
	log        uint64
	appended   []appended // ordered by space
}

// appended is the last number that Append gave in a space.
type appended struct {
	space byte
	last  uint64
}

// last returns where the last number of space is kept, making room for it. A space
// that is used for the first time begins with the epoch, like all others.
func (s *state) last(space byte) *uint64 {
	i, ok := slices.BinarySearchFunc(s.appended, space, func(a appended, b byte) int { return int(a.space) - int(b) })
	if !ok {
		s.appended = slices.Insert(s.appended, i, appended{space: space, last: s.epoch << epochShift})
	}
	return &s.appended[i].last
}

// encode appends the record to b, in the present schema.
func (s *state) encode(b []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, schemaVersion)
	b = append(b, s.id[:]...)
	b = binary.BigEndian.AppendUint64(b, s.epoch)
	b = binary.BigEndian.AppendUint64(b, s.generation)
	b = binary.BigEndian.AppendUint64(b, s.batch)
	b = binary.BigEndian.AppendUint64(b, s.token)
	b = binary.BigEndian.AppendUint64(b, s.sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(s.instant))
	b = binary.BigEndian.AppendUint64(b, uint64(s.offset))
	b = append(b, s.boot[:]...)
	b = binary.BigEndian.AppendUint64(b, s.log)
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.appended)))
	for _, a := range s.appended {
		b = append(b, a.space)
		b = binary.BigEndian.AppendUint64(b, a.last)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// decodeState reads a state record. A record of a newer schema is returned with
// its version only. The error is errBadRecord.
func decodeState(b []byte) (state, error) {
	if len(b) < 8 {
		return state{}, errBadRecord
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return state{}, errBadRecord
	}
	s := state{schema: binary.BigEndian.Uint32(body)}
	if s.schema > schemaVersion {
		return s, nil
	}
	if s.schema == 0 || len(body) < stateFixed {
		return state{}, errBadRecord
	}
	copy(s.id[:], body[4:])
	s.epoch = binary.BigEndian.Uint64(body[20:])
	s.generation = binary.BigEndian.Uint64(body[28:])
	s.batch = binary.BigEndian.Uint64(body[36:])
	s.token = binary.BigEndian.Uint64(body[44:])
	s.sequence = binary.BigEndian.Uint64(body[52:])
	s.instant = int64(binary.BigEndian.Uint64(body[60:]))
	s.offset = int64(binary.BigEndian.Uint64(body[68:]))
	copy(s.boot[:], body[76:])
	rest := body[92:]
	if s.schema >= 2 {
		if len(rest) < 10 {
			return state{}, errBadRecord
		}
		s.log, rest = binary.BigEndian.Uint64(rest), rest[8:]
	}
	n := int(binary.BigEndian.Uint16(rest))
	list := rest[2:]
	if len(list) != 9*n {
		return state{}, errBadRecord
	}
	for i := range n {
		a := appended{space: list[9*i], last: binary.BigEndian.Uint64(list[9*i+1:])}
		if i > 0 && a.space <= s.appended[i-1].space {
			return state{}, errBadRecord
		}
		s.appended = append(s.appended, a)
	}
	return s, nil
}

// appendKey is the key of Append: space, number.
func appendKey(space byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, n)
}

func encodeCounter(v int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(v))
}

func decodeCounter(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, errBadCounter
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}
