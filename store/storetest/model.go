package storetest

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/store"
)

// model is the dumbest store: two maps.
type model struct {
	keys     map[string]string
	counters map[string]int64
	appended map[byte]uint64 // greatest number seen
	token    uint64
	sequence uint64
}

func newModel() *model {
	return &model{keys: map[string]string{}, counters: map[string]int64{}, appended: map[byte]uint64{}}
}

func (m *model) clone() *model {
	c := *m
	c.keys, c.counters, c.appended = maps.Clone(m.keys), maps.Clone(m.counters), maps.Clone(m.appended)
	return &c
}

func (m *model) scan(from, to string) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		if k >= from && (to != "" && k < to || to == "" && k[0] == from[0]) {
			list = append(list, k+"="+m.keys[k])
		}
	}
	return list
}

func (m *model) sums(prefix string) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m.counters)) {
		if strings.HasPrefix(k, prefix) && m.counters[k] != 0 {
			list = append(list, sumText(k, m.counters[k]))
		}
	}
	return list
}

// testModel runs random functions, failures, views and reopenings against the
// model: package store's whole contract for one caller.
func testModel(t *testing.T, f Factory) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(memory(), "storetest")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := f.open(t, dir)
		defer func() { s.Close() }()
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				next := m.clone()
				fail := rapid.Bool().Draw(t, "fail")
				steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 20).Draw(t, "steps")
				err := s.Update(ctx, func(tx store.Tx) error {
					for _, step := range steps {
						step.run(t, tx, next)
					}
					if fail {
						return errFn
					}
					return nil
				})
				if fail != (err == errFn) || !fail && err != nil {
					t.Fatalf("update: got error %v, want failure %v", err, fail)
				}
				if fail {
					// Numbers may be skipped, and never go back.
					m.token, m.sequence, m.appended = next.token, next.sequence, next.appended
				} else {
					m = next
				}
			},
			"view": func(t *rapid.T) {
				step := drawStep(t)
				view(t, s, func(r store.Reader) { step.read(t, r, m) })
			},
			"reopen": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
				s = f.open(t, dir)
			},
		})
		view(t, s, func(r store.Reader) {
			for _, space := range []string{"a", "b", "l"} {
				if got, want := dump(r, []byte(space), nil), m.scan(space, ""); !slices.Equal(got, want) {
					t.Fatalf("space %s at the end: got %q, want %q", space, got, want)
				}
			}
		})
	})
}

// memory names a folder in memory, if there is one: the model opens thousands of
// stores, and asks nothing of a disk.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// step is one operation on a Tx; its reads are those of a Reader too.
type step struct {
	op         string
	key, to    string
	value      string
	delta      int64
	stopsAfter int
}

func drawStep(t *rapid.T) step {
	key := rapid.StringMatching(`[ab][0-9]?[0-9]?`)
	return step{
		op:         rapid.SampledFrom([]string{"put", "put", "delete", "add", "append", "mint", "next", "get", "scan", "back", "sum", "sums"}).Draw(t, "op"),
		key:        key.Draw(t, "key"),
		to:         rapid.OneOf(rapid.Just(""), key).Draw(t, "to"),
		value:      rapid.StringN(0, 8, 600).Draw(t, "value"),
		delta:      rapid.Int64Range(-2, 2).Draw(t, "delta"),
		stopsAfter: rapid.IntRange(1, 100).Draw(t, "stopsAfter"),
	}
}

func (s step) run(t *rapid.T, tx store.Tx, m *model) {
	switch s.op {
	case "put":
		tx.Put([]byte(s.key), []byte(s.value))
		m.keys[s.key] = s.value
	case "delete":
		tx.Delete([]byte(s.key))
		delete(m.keys, s.key)
	case "add":
		tx.Add([]byte(s.key), s.delta)
		m.counters[s.key] += s.delta
	case "append":
		n := tx.Append('l', []byte(s.value))
		greater(t, "Append", n, m.appended['l'])
		m.appended['l'] = n
		m.keys[string(numberKey('l', n))] = s.value
	case "mint":
		n := tx.Mint(s.key)
		greater(t, "Mint", n, m.token)
		m.token = n
	case "next":
		n := tx.Next()
		greater(t, "Next", n, m.sequence)
		m.sequence = n
	default:
		s.read(t, tx, m)
	}
}

func greater(t *rapid.T, what string, n, last uint64) {
	t.Helper()
	if n <= last || n >= 1<<53 {
		t.Fatalf("%s: got %d after %d", what, n, last)
	}
}

func (s step) read(t *rapid.T, r store.Reader, m *model) {
	var to []byte
	if s.to != "" {
		to = []byte(s.to)
	}
	switch s.op {
	case "get":
		want, ok := m.keys[s.key]
		if got := r.Get([]byte(s.key)); ok != (got != nil) || string(got) != want {
			t.Fatalf("Get(%q): got %q, want %q (%v)", s.key, got, want, ok)
		}
	case "scan", "back":
		want := m.scan(s.key, s.to)
		scan, name := r.Scan, "Scan"
		if s.op == "back" {
			slices.Reverse(want)
			scan, name = r.ScanBack, "ScanBack"
		}
		want = want[:min(len(want), s.stopsAfter)]
		var got []string
		scan([]byte(s.key), to, func(k, v []byte) bool {
			got = append(got, string(k)+"="+string(v))
			return len(got) < s.stopsAfter
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%s(%q, %q): got %q, want %q", name, s.key, s.to, got, want)
		}
	case "sum":
		if got, want := r.Sum([]byte(s.key)), m.counters[s.key]; got != want {
			t.Fatalf("Sum(%q): got %d, want %d", s.key, got, want)
		}
	case "sums":
		if got, want := dumpSums(r, s.key), m.sums(s.key); !slices.Equal(got, want) {
			t.Fatalf("Sums(%q): got %q, want %q", s.key, got, want)
		}
	}
}
