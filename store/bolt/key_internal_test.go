package bolt

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Decoders return what was encoded, refuse every changed byte, and never panic.
func TestRecords_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
		id := func() (b [idSize]byte) {
			copy(b[:], rapid.SliceOfN(rapid.Byte(), idSize, idSize).Draw(t, "id"))
			return b
		}
		s := state{
			schema: schemaVersion, id: id(), epoch: u("epoch"), generation: u("generation"), batch: u("batch"),
			token: u("token"), sequence: u("sequence"), instant: int64(u("instant")), offset: int64(u("offset")), boot: id(),
		}
		for range rapid.IntRange(0, 5).Draw(t, "spaces") {
			*s.last(rapid.Byte().Draw(t, "space")) = u("last")
		}
		b := s.encode(nil)
		if got, err := decodeState(b); err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("state: got %+v, %v, want %+v", got, err, s)
		}
		m := mark{id(), u("epoch"), u("generation"), u("token"), u("sequence"), rapid.Bool().Draw(t, "clean"), u("batch")}
		mb := m.encode()
		if got, err := decodeMark(mb); err != nil || got != m {
			t.Fatalf("mark: got %+v, %v, want %+v", got, err, m)
		}
		flip := func(b []byte) []byte {
			b = slices.Clone(b)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			return b
		}
		if got, err := decodeState(flip(b)); err == nil {
			t.Fatalf("a changed state was taken for %+v", got)
		}
		if got, err := decodeMark(flip(mb)); err == nil {
			t.Fatalf("a changed mark was taken for %+v", got)
		}
		if n := rapid.IntRange(0, len(b)-1).Draw(t, "length"); n < len(b) {
			if got, err := decodeState(b[:n]); err == nil {
				t.Fatalf("a state cut off at %d was taken for %+v", n, got)
			}
		}
	})
}

func FuzzDecodeState(f *testing.F) {
	s := state{schema: schemaVersion, appended: []appended{{'l', 7}}}
	f.Add(s.encode(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := decodeState(b); err == nil && s.schema == schemaVersion && !slices.Equal(s.encode(nil), b) {
			t.Errorf("%x was taken for %+v", b, s)
		}
	})
}
