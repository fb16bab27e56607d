package guard_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/guard"
)

// P2.7: smaller tokens are refused, equal and greater ones accepted, for any
// order of arrival; against a model that remembers the maximum. Without the
// comparison in Do this fails.
func TestDo_RefusesSmallerAcceptsEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := guard.New(nil)
		seen := map[string]uint64{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			r := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "resource")
			token := rapid.Uint64Range(0, 6).Draw(t, "token")
			ran := false
			err := g.Do(r, token, func() error { ran = true; return nil })
			admit := token > 0 && token >= seen[r]
			if ran != admit || (err == nil) != admit {
				t.Fatalf("token %d after %d: ran %v, err %v", token, seen[r], ran, err)
			}
			var stale *guard.StaleError
			if !admit && (!errors.As(err, &stale) || stale.Given != token || stale.Seen != seen[r]) {
				t.Fatalf("got %v", err)
			}
			seen[r] = max(seen[r], token)
		}
	})
}

// A change that fails leaves the older worker shut out.
func TestDo_RemembersThoughTheChangeFails(t *testing.T) {
	g := guard.New(nil)
	boom := errors.New("boom")
	if err := g.Do("x", 7, func() error { return boom }); err != boom {
		t.Fatalf("got %v, want the change's own error", err)
	}
	if err := g.Do("x", 6, func() error { return nil }); err == nil {
		t.Fatal("a smaller token was admitted")
	}
}

// Changes of one resource do not overlap: check and effect are one.
func TestDo_OneAtATime(t *testing.T) {
	g := guard.New(nil)
	var wg sync.WaitGroup
	inside, last := 0, uint64(0)
	for i := range 200 {
		wg.Go(func() {
			_ = g.Do("x", uint64(i+1), func() error {
				inside++
				defer func() { inside-- }()
				if inside != 1 || uint64(i+1) < last {
					t.Errorf("overlap %d, token %d after %d", inside, i+1, last)
				}
				last = uint64(i + 1)
				return nil
			})
		})
	}
	wg.Wait()
}

type failing struct{ load, save error }

func (f failing) Load(string) (uint64, error) { return 0, f.load }
func (f failing) Save(string, uint64) error   { return f.save }

// What cannot be remembered is not done.
func TestDo_FailsClosed(t *testing.T) {
	for _, f := range []failing{{load: errors.New("no")}, {save: errors.New("no")}} {
		ran := false
		err := guard.New(f).Do("x", 1, func() error { ran = true; return nil })
		if err == nil || ran {
			t.Errorf("%+v: ran %v, err %v", f, ran, err)
		}
	}
}

func Example() {
	g := guard.New(nil)
	write := func(token uint64, text string) {
		err := g.Do("report.txt", token, func() error {
			fmt.Println("wrote:", text)
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	write(4, "by the first worker")
	write(7, "by its successor")
	write(4, "by the first worker, woken up late")
	// Output:
	// wrote: by the first worker
	// wrote: by its successor
	// fencing token 4 for "report.txt" is stale: 7 has been seen
}
