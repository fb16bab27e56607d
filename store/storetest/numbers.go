package storetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/store"
)

// P7: numbers are greater than all before, below 2^53, start at 1 and never
// repeat, also not when the functions that got them fail, nor over reopening.
func testNumbers(t *testing.T, f Factory) {
	dir := t.TempDir()
	var all struct {
		mu                   sync.Mutex
		tokens, sends, entry []uint64
	}
	for round := range 3 {
		s := f.open(t, dir)
		if round == 0 {
			update(t, s, func(tx store.Tx) {
				if a, b, c := tx.Mint("r"), tx.Next(), tx.Append('l', present); a != 1 || b != 1 || c != 1 {
					t.Errorf("first numbers: got %d, %d, %d, want 1, 1, 1", a, b, c)
				}
				all.tokens, all.sends, all.entry = []uint64{1}, []uint64{1}, []uint64{1}
			})
		}
		highest := []uint64{slices.Max(all.tokens), slices.Max(all.sends), slices.Max(all.entry)}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for j := range 10 {
					var tokens, sends, entry []uint64
					err := s.Update(ctx, func(tx store.Tx) error {
						tokens = []uint64{tx.Mint("r"), tx.Mint("other")}
						sends = []uint64{tx.Next(), tx.Next()}
						entry = []uint64{tx.Append('l', present)}
						if (i+j)%4 == 0 {
							return errFn
						}
						return nil
					})
					if err != nil {
						continue
					}
					if tokens[0] >= tokens[1] || sends[0] >= sends[1] {
						t.Errorf("numbers of one function: got %d, %d", tokens, sends)
					}
					for k, n := range []uint64{tokens[0], sends[0], entry[0]} {
						if n <= highest[k] || n >= 1<<53 {
							t.Errorf("number %d after %d in an earlier run", n, highest[k])
						}
					}
					all.mu.Lock()
					all.tokens = append(all.tokens, tokens...)
					all.sends = append(all.sends, sends...)
					all.entry = append(all.entry, entry...)
					all.mu.Unlock()
				}
			})
		}
		wg.Wait()
		view(t, s, func(r store.Reader) {
			got := 0
			r.Scan([]byte("l"), nil, func(k, _ []byte) bool { got++; return true })
			if got != len(all.entry) {
				t.Errorf("entries: got %d, want %d", got, len(all.entry))
			}
		})
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	for name, list := range map[string][]uint64{"tokens": all.tokens, "sends": all.sends, "entries": all.entry} {
		slices.Sort(list)
		if len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%s repeat", name)
		}
	}
}
