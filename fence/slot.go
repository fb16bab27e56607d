package fence

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Space is the first byte of the keys that this package owns.
const Space = 'l'

// A Slot is one place of an actor: what a lease is held on. Numbers start at 1.
type Slot struct {
	Actor  string
	Number int
}

// maxSlot is the greatest slot number that a key holds.
const maxSlot = 1<<16 - 1

// valid reports whether s names a place that a lease can be held on.
func (s Slot) valid() bool {
	return s.Actor != "" && !strings.Contains(s.Actor, "\x00") && s.Number >= 1 && s.Number <= maxSlot
}

func (s Slot) String() string { return fmt.Sprintf("%s/%d", s.Actor, s.Number) }

// resource names the slot towards store.Tx.Mint.
func (s Slot) resource() string { return "slot:" + s.String() }

// key is Space, the actor's name, 0, and the number as two bytes big-endian.
// Actor names hold no zero byte, so slots sort by actor, then number.
func (s Slot) key() []byte {
	k := make([]byte, 0, len(s.Actor)+4)
	k = append(k, Space)
	k = append(k, s.Actor...)
	k = append(k, 0)
	return binary.BigEndian.AppendUint16(k, uint16(s.Number))
}

func parseSlot(key []byte) (Slot, bool) {
	if len(key) < 5 || key[0] != Space || key[len(key)-3] != 0 {
		return Slot{}, false
	}
	s := Slot{Actor: string(key[1 : len(key)-3]), Number: int(binary.BigEndian.Uint16(key[len(key)-2:]))}
	return s, s.valid()
}

// A Holder is who asks: a process in its slot with the token of its lease.
type Holder struct {
	Slot    Slot
	Process Process
	Token   Token
}
