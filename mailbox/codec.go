package mailbox

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
)

// Records are sealed (all but actors, which are JSON, and what says all in its key): a
// version byte, fields, and the CRC-32C of both, so that a damaged record is refused and
// never believed. bbolt itself checks no data pages.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An encoder appends the fields of one record.
type encoder struct {
	b  []byte
	of *stock
}

// newEncoder begins a record of about so many bytes, which are cut from a stock; nothing
// else is until it is sealed.
func newEncoder(of *stock, version byte, size int) *encoder {
	return &encoder{b: append(of.open(size+5), version), of: of}
}

func (e *encoder) byte(v byte)     { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)   { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)     { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) raw(v []byte)    { e.b = append(e.b, v...) }
func (e *encoder) bytes(v []byte)  { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) string(v string) { e.uint(uint64(len(v))); e.b = append(e.b, v...) }

// time is stored as nanoseconds since 1970 UTC, the zero time as 0.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.int(0)
		return
	}
	e.int(t.UnixNano())
}

func (e *encoder) seal() []byte {
	return e.of.close(binary.BigEndian.AppendUint32(e.b, crc32.Checksum(e.b, castagnoli)))
}

// A decoder reads the fields of one record. A field that is not there makes it
// bad, and every later field zero.
type decoder struct {
	b   []byte
	bad bool
}

// unseal checks version and checksum of a record called what.
func unseal(b []byte, version byte, what named) (decoder, error) {
	switch {
	case len(b) < 5:
		return decoder{}, corrupt(what, "its record is too short")
	case crc32.Checksum(b[:len(b)-4], castagnoli) != binary.BigEndian.Uint32(b[len(b)-4:]):
		return decoder{}, corrupt(what, "its record does not match its checksum")
	case b[0] != version:
		return decoder{}, corrupt(what, "its record is of an unknown version")
	}
	return decoder{b: b[1 : len(b)-4]}, nil
}

// named is what a record is called, put together only where somebody reads it.
type named struct {
	kind string
	id   ID // 0: the kind says it all
}

func (n named) String() string {
	if n.id == 0 {
		return n.kind
	}
	return n.kind + " " + n.id.String()
}

func corrupt(what named, why string) error {
	return refusal.New(refusal.StoreCorrupt, what.String()+" cannot be read", why,
		"run `sovereign verify` to see all damage; restore a backup if it matters")
}

// done returns an error unless every field was there and nothing is left.
func (d *decoder) done(what named) error {
	if d.bad || len(d.b) != 0 {
		return corrupt(what, "its record does not hold what it should")
	}
	return nil
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// raw returns the next n bytes, valid as long as the record is.
func (d *decoder) raw(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return make([]byte, max(0, min(n, 16)))
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

// bytes returns a field valid as long as the record is.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	return d.raw(int(n))
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) time() time.Time {
	ns := d.int()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
