package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/store"
)

// Durable when Update has returned nil: seen by the next View and after reopening.
func testStores(t *testing.T, f Factory) {
	dir := t.TempDir()
	s := f.open(t, dir)
	update(t, s, func(tx store.Tx) {
		tx.Put([]byte("a1"), []byte("one"))
		tx.Put([]byte("b1"), nil)
		tx.Add([]byte("n"), 7)
	})
	check := func() {
		t.Helper()
		view(t, s, func(r store.Reader) {
			if got := string(r.Get([]byte("a1"))); got != "one" {
				t.Errorf("a1: got %q, want %q", got, "one")
			}
			if got := r.Get([]byte("b1")); got == nil || len(got) != 0 {
				t.Errorf("b1, stored as an empty value: got %v, want an empty value", got)
			}
			if got := r.Get([]byte("a2")); got != nil {
				t.Errorf("a2, never stored: got %q, want nil", got)
			}
			if got := r.Sum([]byte("n")); got != 7 {
				t.Errorf("counter n: got %d, want 7", got)
			}
		})
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	s = f.open(t, dir)
	defer s.Close()
	check()
	select {
	case <-s.Failed():
		t.Error("Failed is closed, and nothing has failed")
	default:
	}
}

// writeAll uses every kind of write.
func writeAll(tx store.Tx) {
	tx.Put([]byte("a1"), []byte("two"))
	tx.Put([]byte("a2"), present)
	tx.Delete([]byte("a3"))
	tx.Add([]byte("n"), 1)
	tx.Append('l', present)
	tx.Mint("r")
	tx.Next()
}

func wholeState(r store.Reader) []string {
	return slices.Concat(dump(r, []byte("a"), nil), dump(r, []byte("l"), nil), dumpSums(r, ""))
}

// "If fn returns an error, nothing that it wrote is stored, and Update returns
// that error."
func testError(t *testing.T, f Factory) {
	s := f.fresh(t)
	want := prepare(t, s)
	err := s.Update(ctx, func(tx store.Tx) error {
		writeAll(tx)
		return errFn
	})
	if !errors.Is(err, errFn) {
		t.Errorf("got error %v, want the function's own", err)
	}
	view(t, s, func(r store.Reader) {
		if got := wholeState(r); !slices.Equal(got, want) {
			t.Errorf("after a failed function: got %q, want %q", got, want)
		}
	})
}

func prepare(t TB, s store.Store) (state []string) {
	t.Helper()
	update(t, s, func(tx store.Tx) {
		tx.Put([]byte("a1"), []byte("one"))
		tx.Put([]byte("a3"), []byte("three"))
		tx.Add([]byte("n"), 5)
	})
	view(t, s, func(r store.Reader) { state = wholeState(r) })
	return state
}

// A panic of the function is the caller's, and leaves nothing behind either.
func testPanic(t *testing.T, f Factory) {
	s := f.fresh(t)
	want := prepare(t, s)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			defer func() {
				if got := recover(); i%2 == 0 && got != i || i%2 == 1 && got != nil {
					t.Errorf("caller %d: recovered %v", i, got)
				}
			}()
			err := s.Update(ctx, func(tx store.Tx) error {
				if i%2 == 0 {
					writeAll(tx)
					panic(i)
				}
				tx.Add([]byte("m"), 1)
				return nil
			})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	want = append(want[:len(want)-1:len(want)-1], "m=20", want[len(want)-1])
	view(t, s, func(r store.Reader) {
		if got := wholeState(r); !slices.Equal(got, want) {
			t.Errorf("after panics: got %q, want %q", got, want)
		}
	})
}

// "It sees its own writes."
func testOwnWrites(t *testing.T, f Factory) {
	s := f.fresh(t)
	update(t, s, func(tx store.Tx) {
		for _, k := range []string{"a1", "a3", "a5", "b1"} {
			tx.Put([]byte(k), []byte("old"))
		}
		tx.Add([]byte("n1"), 1)
		tx.Add([]byte("n3"), 3)
	})
	update(t, s, func(tx store.Tx) {
		tx.Put([]byte("a2"), []byte("new"))
		tx.Put([]byte("a3"), []byte("new"))
		tx.Delete([]byte("a5"))
		tx.Delete([]byte("a9"))
		tx.Put([]byte("a6"), []byte("new"))
		tx.Delete([]byte("a6"))
		tx.Add([]byte("n2"), 2)
		tx.Add([]byte("n3"), 1)
		tx.Add([]byte("n1"), -1)
		n := tx.Append('l', []byte("entry"))

		want := []string{"a1=old", "a2=new", "a3=new"}
		if got := dump(tx, []byte("a"), nil); !slices.Equal(got, want) {
			t.Errorf("Scan: got %q, want %q", got, want)
		}
		slices.Reverse(want)
		if got := dumpBack(tx, []byte("a"), nil); !slices.Equal(got, want) {
			t.Errorf("ScanBack: got %q, want %q", got, want)
		}
		if got := string(tx.Get([]byte("a3"))); got != "new" {
			t.Errorf("Get of an overwritten key: got %q, want %q", got, "new")
		}
		if got := tx.Get([]byte("a5")); got != nil {
			t.Errorf("Get of a deleted key: got %q, want nil", got)
		}
		if got := string(tx.Get(numberKey('l', n))); got != "entry" {
			t.Errorf("Get of an appended key: got %q, want %q", got, "entry")
		}
		if got, want := dumpSums(tx, "n"), []string{"n2=2", "n3=4"}; !slices.Equal(got, want) {
			t.Errorf("Sums: got %q, want %q", got, want)
		}
		if got := tx.Sum([]byte("n1")); got != 0 {
			t.Errorf("Sum of a counter back at 0: got %d", got)
		}
	})
	update(t, s, func(tx store.Tx) {
		if got, want := dumpSums(tx, ""), []string{"n2=2", "n3=4"}; !slices.Equal(got, want) {
			t.Errorf("Sums in the next function: got %q, want %q", got, want)
		}
	})
}

// Functions that share a commit are as separate as those that do not.
func testNeighbours(t *testing.T, f Factory) {
	s := f.fresh(t)
	const callers, rounds = 32, 20
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for round := range rounds {
				bad := (i+round)%3 == 0
				err := s.Update(ctx, func(tx store.Tx) error {
					tx.Put(fmt.Appendf(nil, "k%02d-%02d", i, round), present)
					tx.Add([]byte("done"), 1)
					if bad {
						tx.Delete([]byte("k00-00"))
						tx.Add([]byte("done"), 100)
						return errFn
					}
					return nil
				})
				if bad != errors.Is(err, errFn) || !bad && err != nil {
					t.Errorf("caller %d, round %d: got error %v", i, round, err)
				}
			}
		})
	}
	wg.Wait()
	want := 0
	for i := range callers {
		for round := range rounds {
			if (i+round)%3 != 0 {
				want++
			}
		}
	}
	view(t, s, func(r store.Reader) {
		if got := len(dump(r, []byte("k"), nil)); got != want {
			t.Errorf("keys: got %d, want %d", got, want)
		}
		if got := r.Sum([]byte("done")); got != int64(want) {
			t.Errorf("counter: got %d, want %d", got, want)
		}
	})
}

// MaxOps, MaxBytes.
func testBounds(t *testing.T, f Factory) {
	s := f.fresh(t)
	ops := map[string]func(store.Tx, int){
		"Put":    func(tx store.Tx, i int) { tx.Put(numberKey('a', uint64(i)), present) },
		"Delete": func(tx store.Tx, i int) { tx.Delete(numberKey('a', uint64(i))) },
		"Add":    func(tx store.Tx, i int) { tx.Add([]byte("n"), 1) },
		"Mint":   func(tx store.Tx, i int) { tx.Mint("r") },
		"Append": func(tx store.Tx, i int) { tx.Append('l', present) },
	}
	for name, op := range ops {
		for _, n := range []int{store.MaxOps, store.MaxOps + 1} {
			err := s.Update(ctx, func(tx store.Tx) error {
				for i := range n {
					op(tx, i)
				}
				return nil
			})
			if over := n > store.MaxOps; over != errors.Is(err, store.ErrTooLarge) || !over && err != nil {
				t.Errorf("%d times %s: got error %v", n, name, err)
			}
		}
	}
	view(t, s, func(r store.Reader) {
		if got := r.Sum([]byte("n")); got != store.MaxOps {
			t.Errorf("counter after one function within the bound and one beyond: got %d, want %d", got, store.MaxOps)
		}
	})
	key := []byte("body")
	for _, n := range []int{store.MaxBytes - len(key), store.MaxBytes - len(key) + 1} {
		err := s.Update(ctx, func(tx store.Tx) error {
			tx.Put(key, make([]byte, n))
			return nil
		})
		if over := n > store.MaxBytes-len(key); over != errors.Is(err, store.ErrTooLarge) || !over && err != nil {
			t.Errorf("a value of %d bytes: got error %v", n, err)
		}
	}
}

// ErrBadKey.
func testBadKeys(t *testing.T, f Factory) {
	s := f.fresh(t)
	long := []byte(strings.Repeat("k", store.MaxKey+1))
	all := func([]byte, []byte) bool { return true }
	for name, op := range map[string]func(store.Tx){
		"empty Put":    func(tx store.Tx) { tx.Put(nil, present) },
		"long Put":     func(tx store.Tx) { tx.Put(long, present) },
		"empty Delete": func(tx store.Tx) { tx.Delete([]byte{}) },
		"empty Add":    func(tx store.Tx) { tx.Add(nil, 1) },
		"empty Get":    func(tx store.Tx) { tx.Get(nil) },
		"empty Scan":   func(tx store.Tx) { tx.Scan(nil, nil, all) },
	} {
		err := s.Update(ctx, func(tx store.Tx) error { op(tx); return nil })
		if !errors.Is(err, store.ErrBadKey) {
			t.Errorf("%s: got error %v, want ErrBadKey", name, err)
		}
	}
	if err := s.View(ctx, func(r store.Reader) error { r.Get(nil); return nil }); !errors.Is(err, store.ErrBadKey) {
		t.Errorf("empty Get in a View: got error %v, want ErrBadKey", err)
	}
	update(t, s, func(tx store.Tx) { tx.Put(long[1:], present) })
	view(t, s, func(r store.Reader) {
		if r.Get(long[1:]) == nil {
			t.Error("a key of MaxKey bytes is not there")
		}
	})
}

// "Errors of the engine are sticky: they make Update fail whatever the function
// returned."
func testSticky(t *testing.T, f Factory) {
	s := f.fresh(t)
	for _, result := range []error{nil, errFn} {
		err := s.Update(ctx, func(tx store.Tx) error {
			tx.Put([]byte("a1"), present)
			tx.Put(nil, present)
			tx.Put([]byte("a2"), present)
			return result
		})
		if !errors.Is(err, store.ErrBadKey) {
			t.Errorf("got error %v, want the engine's", err)
		}
	}
	view(t, s, func(r store.Reader) {
		if got := dump(r, []byte("a"), nil); len(got) != 0 {
			t.Errorf("got %q, want nothing stored", got)
		}
	})
}

// "ctx only bounds the wait before fn is first run."
func testContext(t *testing.T, f Factory) {
	s := f.fresh(t)
	done, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	err := s.Update(done, func(store.Tx) error { ran = true; return nil })
	if !errors.Is(err, context.Canceled) || ran {
		t.Errorf("with a context that is done: got error %v, ran %v", err, ran)
	}

	// One function holds the store; another waits behind it, and leaves.
	running, finish := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Update(ctx, func(tx store.Tx) error {
			close(running)
			<-finish
			tx.Put([]byte("a1"), present)
			return nil
		})
		if err != nil {
			t.Errorf("the function that ran: %v", err)
		}
	})
	<-running
	waiting, leave := context.WithCancel(ctx)
	left := make(chan error)
	go func() {
		left <- s.Update(waiting, func(tx store.Tx) error { tx.Put([]byte("a2"), present); return nil })
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the function that waited: got error %v, want canceled", err)
	}
	close(finish)
	wg.Wait()

	// A context that ends while the function runs changes nothing.
	mid, cancelMid := context.WithCancel(ctx)
	if err := s.Update(mid, func(tx store.Tx) error {
		cancelMid()
		tx.Put([]byte("a3"), present)
		return nil
	}); err != nil {
		t.Errorf("with a context that ends in between: %v", err)
	}
	view(t, s, func(r store.Reader) {
		if got, want := dump(r, []byte("a"), nil), []string{"a1=x", "a3=x"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Functions act as if one ran after another: compare-and-set loses no increment,
// and agrees with the counter that all of them add to.
func testSerial(t *testing.T, f Factory) {
	s := f.fresh(t)
	const callers, rounds = 64, 25
	key, counter := []byte("cas"), []byte("n")
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range rounds {
				err := s.Update(ctx, func(tx store.Tx) error {
					old := len(tx.Get(key))
					if sum := tx.Sum(counter); sum != int64(old) {
						t.Errorf("counter %d beside a value of %d: not one state", sum, old)
					}
					tx.Put(key, make([]byte, old+1))
					tx.Add(counter, 1)
					return nil
				})
				if err != nil {
					t.Errorf("update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	view(t, s, func(r store.Reader) {
		if got := len(r.Get(key)); got != callers*rounds {
			t.Errorf("compare-and-set: got %d, want %d", got, callers*rounds)
		}
		if got := r.Sum(counter); got != callers*rounds {
			t.Errorf("counter: got %d, want %d", got, callers*rounds)
		}
	})
}
