package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/store"
)

// "View runs fn over one consistent state. It may run beside Updates": it neither
// waits for them nor sees them, however many there are.
func testView(t *testing.T, f Factory) {
	s := f.fresh(t)
	write := func(n int) {
		update(t, s, func(tx store.Tx) {
			for i := range 20 {
				tx.Put(fmt.Appendf(nil, "a%02d", i), fmt.Appendf(nil, "%d", n))
			}
			tx.Add([]byte("n"), 1)
		})
	}
	write(0)
	view(t, s, func(r store.Reader) {
		before := wholeState(r)
		for n := 1; n <= 50; n++ {
			write(n)
			if got := wholeState(r); !slices.Equal(got, before) {
				t.Fatalf("after %d updates the view has changed: got %q, want %q", n, got, before)
			}
		}
	})

	// And beside concurrent ones: all keys of one update, or of another.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 50 {
				write(n)
			}
		})
		wg.Go(func() {
			for range 100 {
				view(t, s, func(r store.Reader) {
					want := string(r.Get([]byte("a00")))
					r.Scan([]byte("a"), nil, func(k, v []byte) bool {
						if string(v) != want {
							t.Errorf("a view saw %q at %q beside %q", v, k, want)
						}
						return true
					})
				})
			}
		})
	}
	wg.Wait()
}

// Scan and ScanBack: half-open bounds, order, the end of a space, an early stop,
// and bounds that span spaces.
func testScan(t *testing.T, f Factory) {
	s := f.fresh(t)
	keys := []string{"a", "a1", "a12", "a2", "b", "b1", "d1", "\xff1", "\xff2"}
	update(t, s, func(tx store.Tx) {
		for _, k := range keys {
			tx.Put([]byte(k), present)
		}
	})
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"a", "", []string{"a", "a1", "a12", "a2"}},
		{"a1", "", []string{"a1", "a12", "a2"}},
		{"a1", "a2", []string{"a1", "a12"}},
		{"a1", "a1", nil},
		{"a2", "a1", nil},
		{"a13", "a9", []string{"a2"}},
		{"a2", "b1", []string{"a2", "b"}},
		{"a2", "d9", []string{"a2", "b", "b1", "d1"}},
		{"a", "b", []string{"a", "a1", "a12", "a2"}},
		{"c", "", nil},
		{"\xff", "", []string{"\xff1", "\xff2"}},
		{"d", "\xff2", []string{"d1", "\xff1"}},
	} {
		var to []byte
		if c.to != "" {
			to = []byte(c.to)
		}
		want := slices.Clone(c.want)
		for i := range want {
			want[i] += "=x"
		}
		check := func(r store.Reader) {
			if got := dump(r, []byte(c.from), to); !slices.Equal(got, want) {
				t.Errorf("Scan(%q, %q): got %q, want %q", c.from, c.to, got, want)
			}
			slices.Reverse(want)
			if got := dumpBack(r, []byte(c.from), to); !slices.Equal(got, want) {
				t.Errorf("ScanBack(%q, %q): got %q, want %q", c.from, c.to, got, want)
			}
			slices.Reverse(want)
		}
		view(t, s, check)
		update(t, s, func(tx store.Tx) { check(tx) })
		// The same where all of it is this function's own.
		update(t, s, func(tx store.Tx) {
			for _, k := range keys {
				tx.Put([]byte(k), present)
			}
			check(tx)
		})
	}
	view(t, s, func(r store.Reader) {
		n := 0
		r.Scan([]byte("a"), []byte("c"), func(_, _ []byte) bool { n++; return n < 5 })
		r.ScanBack([]byte("a"), []byte("c"), func(_, _ []byte) bool { n++; return n < 10 })
		if n != 10 {
			t.Errorf("scans that stop themselves: got %d calls, want 10", n)
		}
	})
}

// What earlier functions have emptied is skipped, not taken for the end. Many
// deletions in one commit need many callers at once, so this repeats with luck on
// its side: the states it checks are the same whoever shares a commit.
func testScanEmptied(t *testing.T, f Factory) {
	s := f.fresh(t)
	const n = 2000
	key := func(i int) []byte { return fmt.Appendf(nil, "a%05d", i) }
	fill := func(from, to int) {
		for i := from; i < to; {
			update(t, s, func(tx store.Tx) {
				for end := min(i+store.MaxOps, to); i < end; i++ {
					tx.Put(key(i), make([]byte, 100))
				}
			})
		}
	}
	count := func(r store.Reader) (forth, back int) {
		r.Scan([]byte("a"), nil, func(_, _ []byte) bool { forth++; return true })
		r.ScanBack([]byte("a"), nil, func(_, _ []byte) bool { back++; return true })
		return forth, back
	}
	fill(0, n)
	// Delete all but the first and last key, or all, from many callers at once;
	// each scans after its deletion.
	for _, keep := range []int{1, 0} {
		lo, hi := keep, n-keep
		var wg sync.WaitGroup
		for i := lo; i < hi; i += store.MaxOps {
			wg.Go(func() {
				update(t, s, func(tx store.Tx) {
					for j := i; j < min(i+store.MaxOps, hi); j++ {
						tx.Delete(key(j))
					}
				})
			})
			wg.Go(func() {
				update(t, s, func(tx store.Tx) {
					forth, back := count(tx)
					if forth != back || forth < 2*keep {
						t.Errorf("Scan found %d keys and ScanBack %d", forth, back)
					}
				})
			})
		}
		wg.Wait()
		view(t, s, func(r store.Reader) {
			if forth, back := count(r); forth != 2*keep || back != 2*keep {
				t.Errorf("left: Scan found %d keys and ScanBack %d, want %d", forth, back, 2*keep)
			}
		})
		fill(0, n)
	}
}

// Additions commute, fold, and leave nothing at 0.
func testSums(t *testing.T, f Factory) {
	s := f.fresh(t)
	const callers, rounds = 32, 20
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for round := range rounds {
				update(t, s, func(tx store.Tx) {
					tx.Add([]byte("a/up"), 2)
					tx.Add([]byte("a/down"), -1)
					tx.Add([]byte("a/zero"), int64(1-2*(round%2)))
					tx.Add(fmt.Appendf(nil, "b/%02d", i), 1)
				})
			}
		})
	}
	wg.Wait()
	view(t, s, func(r store.Reader) {
		want := []string{fmt.Sprintf("a/down=%d", -callers*rounds), fmt.Sprintf("a/up=%d", 2*callers*rounds)}
		if got := dumpSums(r, "a/"); !slices.Equal(got, want) {
			t.Errorf("Sums of a/: got %q, want %q", got, want)
		}
		if got := len(dumpSums(r, "b/")); got != callers {
			t.Errorf("Sums of b/: got %d counters, want %d", got, callers)
		}
		if got := len(dumpSums(r, "")); got != callers+2 {
			t.Errorf("Sums of all: got %d counters, want %d", got, callers+2)
		}
		if got := dumpSums(r, "c"); len(got) != 0 {
			t.Errorf("Sums of c: got %q, want none", got)
		}
		n := 0
		r.Sums([]byte("b/"), func([]byte, int64) bool { n++; return n < 3 })
		if n != 3 {
			t.Errorf("Sums that stop themselves: got %d calls, want 3", n)
		}
	})
}
