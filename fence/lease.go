package fence

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/sovereign-run/sovereign/refusal"
)

// A Lease is the durable right of one process to host one slot. It names the
// process and the token that fences it. ExpiresAt is what is on record; a lease
// that is kept (Leases.Keep) does not expire while it is.
type Lease struct {
	Slot       Slot
	Process    Process
	Token      Token
	AcquiredAt Instant
	RenewedAt  Instant
	ExpiresAt  Instant // Invariant: AcquiredAt <= RenewedAt <= ExpiresAt.
}

// Holder is the lease's process as one who asks.
func (l Lease) Holder() Holder { return Holder{Slot: l.Slot, Process: l.Process, Token: l.Token} }

// A lease record: version 1, 16 bytes of identity, token, acquired, renewed
// and expires as 8 bytes big-endian each, CRC-32C of all before it.
const (
	leaseVersion = 1
	leaseSize    = 1 + 16 + 4*8 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (l Lease) encode() []byte {
	id, _ := l.Process.Bytes()
	b := make([]byte, 0, leaseSize)
	b = append(b, leaseVersion)
	b = append(b, id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Token))
	b = binary.BigEndian.AppendUint64(b, uint64(l.AcquiredAt))
	b = binary.BigEndian.AppendUint64(b, uint64(l.RenewedAt))
	b = binary.BigEndian.AppendUint64(b, uint64(l.ExpiresAt))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeLease returns the record of slot, or a refusal lease_corrupt (P1.9).
func decodeLease(slot Slot, b []byte) (Lease, error) {
	corrupt := func(why string) (Lease, error) {
		return Lease{}, refusal.New(refusal.LeaseCorrupt, "the lease of "+slot.String()+" cannot be read", why,
			"stop what hosts the slot, then run `sovereign lease reset "+slot.String()+"`")
	}
	switch {
	case len(b) != leaseSize:
		return corrupt("its record has the wrong length")
	case b[0] != leaseVersion:
		return corrupt("its record is of an unknown version")
	case binary.BigEndian.Uint32(b[leaseSize-4:]) != crc32.Checksum(b[:leaseSize-4], castagnoli):
		return corrupt("its record does not match its checksum")
	}
	l := Lease{
		Slot:       slot,
		Process:    ProcessOf([16]byte(b[1:17])),
		Token:      Token(binary.BigEndian.Uint64(b[17:])),
		AcquiredAt: Instant(binary.BigEndian.Uint64(b[25:])),
		RenewedAt:  Instant(binary.BigEndian.Uint64(b[33:])),
		ExpiresAt:  Instant(binary.BigEndian.Uint64(b[41:])),
	}
	if l.Token == 0 || l.ExpiresAt < l.RenewedAt || l.RenewedAt < l.AcquiredAt {
		return corrupt("its record is incomplete")
	}
	return l, nil
}
