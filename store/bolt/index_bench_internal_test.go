package bolt

import (
	"encoding/binary"
	"testing"
)

// What a message's life asks of a table, of which two thousand are in it.
func BenchmarkIndex(b *testing.B) {
	key := func(space byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{space}, n) }
	b.ReportAllocs()
	var x *index
	var s *slab
	for n := uint64(0); b.Loop(); n++ {
		if n%2000 == 0 {
			x, s = newIndex(), new(slab)
		}
		x.put(n, key('o', n), key('v', n), s)
		x.put(n, key('b', n), key('v', n), s)
		for range 3 {
			x.get(key('o', n-min(n, 50)), n)
		}
		x.put(n, key('o', n-min(n, 50)), nil, s)
		x.put(n, key('e', n), key('v', n), s)
		x.put(n, key('r', n), key('v', n), s)
		x.put(n, key('z', n), key('v', n), s)
	}
}
