package bolt

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An index shows each batch's state for good, whatever later batches write or take
// back: the keys with their values in both directions, and each key by itself. Forget a
// version that was written twice in one batch in undo and this fails.
func TestIndex_ShowsTheStateAfterEachBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-d]{1,3}`)
		states := []map[string]string{{}}
		x := newIndex()
		w := written{}
		for batch := uint64(1); batch < 8; batch++ {
			state := maps.Clone(states[len(states)-1])
			w.begin(&table{keys: x, states: newIndex()}, batch)
			for i := range rapid.IntRange(0, 10).Draw(t, "writes") {
				k := key.Draw(t, "key")
				if rapid.Bool().Draw(t, "delete") {
					w.put([]byte(k), nil)
					delete(state, k)
					continue
				}
				state[k] = fmt.Sprint(batch, i)
				w.put([]byte(k), []byte(state[k]))
			}
			if rapid.Bool().Draw(t, "undo") {
				w.undo()
				batch-- // its number is free again
				if len(w.keys) != 0 || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
					break
				}
				continue
			}
			w.keep()
			states = append(states, state)
		}
		for batch, want := range states {
			at := uint64(batch)
			sorted := slices.Sorted(maps.Keys(want))
			for _, back := range []bool{false, true} {
				lo, hi := key.Draw(t, "from"), key.Draw(t, "to")
				var got, expected []string
				for _, k := range sorted {
					if lo <= k && k < hi {
						expected = append(expected, k+"="+want[k])
					}
				}
				if back {
					slices.Reverse(expected)
				}
				var c tableCursor
				for c.open(x, at, []byte(lo), []byte(hi), back); c.key != nil; c.advance() {
					if c.value != nil {
						got = append(got, string(c.key)+"="+string(c.value))
					}
				}
				if !slices.Equal(got, expected) {
					t.Fatalf("batch %d, %s to %s, back %v: got %v, want %v", at, lo, hi, back, got, expected)
				}
			}
			k := key.Draw(t, "get")
			v := x.get([]byte(k), at)
			if value, ok := want[k]; ok != (v != nil && v.value != nil) || ok && string(v.value) != value {
				t.Fatalf("batch %d: %s is %v, want %q", at, k, v, value)
			}
		}
	})
}

// A key that a reader looks for is found though another, which it does not see, is put
// right in front of it between the steps of the search. Take whatever follows for the key
// in upTo and this fails: what was committed is read as if it had never been there.
func TestIndex_FindsWhatIsThereBesideAWriter(t *testing.T) {
	x := newIndex()
	x.put(1, []byte("b"), []byte("is there"), nil)
	found := x.before([]byte("b"), nil)
	x.put(2, []byte("a"), []byte("comes meanwhile"), nil)
	if n := found.upTo([]byte("b")); n == nil || string(n.key) != "b" {
		t.Fatalf("looked for b, and found %+v", n)
	}
	// The same, as it comes: each key that is put is the last one in front of z.
	x.put(3, []byte("z"), []byte("is there"), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 20_000 {
			x.put(4, fmt.Appendf(nil, "m%06d", n), []byte("comes meanwhile"), nil)
		}
	}()
	for {
		if v := x.get([]byte("z"), 3); v == nil {
			t.Error("what was there is not found")
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
