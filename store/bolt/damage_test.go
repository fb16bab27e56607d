package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

const pageSize = 4096

// specimen returns the files of a store that was closed, with trees of three
// levels, overflow pages, inline buckets, counters and free pages.
func specimen(t *testing.T) (data, mark []byte) {
	t.Helper()
	dir := memoryDir(t)
	db := open(t, dir, bolt.Options{})
	for i := range 20 {
		update(t, db, func(tx store.Tx) {
			for j := range 30 {
				key := fmt.Appendf(nil, "a-%0300d", i*30+j)
				tx.Put(key, bytes.Repeat([]byte{'v'}, 100))
			}
			tx.Put(fmt.Appendf(nil, "b%d", i), make([]byte, 3000))
			tx.Append('l', []byte("entry"))
			tx.Add(fmt.Appendf(nil, "counter-%0100d", i), 1)
			tx.Mint("r")
		})
	}
	update(t, db, func(tx store.Tx) {
		tx.Put([]byte("c1"), []byte("inline"))
		tx.Put([]byte("d1"), make([]byte, 100_000))
		for i := range 10 {
			tx.Delete(fmt.Appendf(nil, "b%d", i))
		}
	})
	closeStore(t, db)
	data, err := os.ReadFile(filepath.Join(dir, bolt.DataFile))
	if err != nil {
		t.Fatal(err)
	}
	mark, err = os.ReadFile(filepath.Join(dir, bolt.MarkFile))
	if err != nil {
		t.Fatal(err)
	}
	return data, mark
}

// exercise puts the files into a folder and uses all of the store. It must come
// back: with the refusal of Open, or having seen damage or not. It returns the
// first refusal.
func exercise(t *testing.T, what string, data, mark []byte) (first error) {
	t.Helper()
	dir := memoryDir(t)
	defer os.RemoveAll(dir)
	for name, b := range map[string][]byte{bolt.DataFile: data, bolt.MarkFile: mark} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A watch over what cannot return: it ends the test run with all stacks.
	watch := time.AfterFunc(patience, func() {
		debug.SetTraceback("all")
		panic(what + ": does not come back")
	})
	defer watch.Stop()
	note := func(doing string, err error, allowed ...refusal.Category) {
		if err == nil {
			return
		}
		if first == nil {
			first = err
		}
		for _, c := range allowed {
			if refusal.Has(err, c) {
				return
			}
		}
		t.Errorf("%s: %s: got %v", what, doing, err)
	}
	note("check the file", bolt.CheckFile(ctx, dir, func(error) bool { return true }))
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		note("open", err, refusal.StoreCorrupt, refusal.StoreRolledBack)
		if after, _ := os.ReadFile(filepath.Join(dir, bolt.DataFile)); !bytes.Equal(after, data) {
			t.Errorf("%s: the refusal has changed the file", what)
		}
		return first
	}
	seen := 0
	note("view", db.View(ctx, func(r store.Reader) error {
		r.Scan([]byte{0}, []byte{255}, func(k, v []byte) bool { seen += len(k) + len(v); return true })
		r.ScanBack([]byte{0}, []byte{255}, func(k, v []byte) bool { seen += len(k) + len(v); return true })
		r.Sums(nil, func(k []byte, _ int64) bool { seen += len(k); return true })
		return nil
	}), refusal.StoreCorrupt)
	// The race detector pays for every byte of the huge buffers that bbolt asks for
	// when a length is damaged, used or not. Updates on damage run without it.
	for i := 0; i < 40 && !raceEnabled; i += 4 {
		note("update", db.Update(ctx, func(tx store.Tx) error {
			for j := range 30 {
				tx.Put(fmt.Appendf(nil, "a-%0300d", i*30+j), []byte("new"))
			}
			tx.Put([]byte("c2"), []byte("new"))
			tx.Delete(fmt.Appendf(nil, "b%d", i))
			tx.Append('l', nil)
			tx.Add(fmt.Appendf(nil, "counter-%0100d", i), -1)
			return nil
		}), refusal.StoreCorrupt, refusal.OutcomeUnknown)
	}
	note("check", db.Check(ctx, func(error) bool { return true }), refusal.StoreCorrupt, refusal.OutcomeUnknown) // of one that an update has failed
	note("close", db.Close(), refusal.StoreCorrupt, refusal.OutcomeUnknown)
	return first
}

// A file that is cut off, emptied, overwritten or somebody else's is refused,
// store_corrupt, with what to do. Drop the look at the file before bbolt opens it
// and this crashes with a bus error.
func TestOpen_RefusesDamage(t *testing.T) {
	data, mark := specimen(t)
	zeroed := func(from, to int) []byte {
		b := bytes.Clone(data)
		clear(b[from:to])
		return b
	}
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	f, err := bbolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	other, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string][]byte{
		"empty":             {},
		"one byte":          {1},
		"text":              bytes.Repeat([]byte("not a database\n"), 10_000),
		"zeros":             make([]byte, 64<<10),
		"both metas zeroed": zeroed(0, 2*pageSize),
		"a foreign bbolt":   other,
	}
	for _, n := range []int{100, pageSize, 2 * pageSize, 3*pageSize + 1, len(data) / 2} {
		cases[fmt.Sprintf("cut off at %d", n)] = data[:n]
	}
	for name, b := range cases {
		err := exercise(t, name, b, mark)
		if !refusal.Has(err, refusal.StoreCorrupt) || refusal.Of(err).Next == "" {
			t.Errorf("%s: got %v, want store_corrupt with a way out", name, err)
		}
	}
	if err := exercise(t, "unharmed", data, mark); err != nil {
		t.Errorf("unharmed: got %v", err)
	}
}

// No page that is zeroed, or put in the place of another, crashes the program or
// hangs it, and no zeroed page in use goes unseen by Check.
func TestOpen_SurvivesDamagedPages(t *testing.T) {
	data, mark := specimen(t)
	r := rand.New(rand.NewPCG(1, 2))
	for page := range len(data) / pageSize {
		b := bytes.Clone(data)
		clear(b[page*pageSize : (page+1)*pageSize])
		exercise(t, fmt.Sprintf("page %d zeroed", page), b, mark)

		b = bytes.Clone(data)
		from := r.IntN(len(data) / pageSize)
		copy(b[page*pageSize:(page+1)*pageSize], data[from*pageSize:])
		exercise(t, fmt.Sprintf("page %d replaced by %d", page, from), b, mark)
	}
}

// Flipped bits and bytes, most of them in headers and tables, where they hurt.
// The seed is printed, and the file can be made again from it.
func TestOpen_SurvivesFlippedBytes(t *testing.T) {
	data, mark := specimen(t)
	rounds := 150
	if n, err := strconv.Atoi(os.Getenv("BOLT_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("BOLT_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		b := bytes.Clone(data)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(b))
			if r.IntN(4) > 0 {
				at = at/pageSize*pageSize + r.IntN(200)
			}
			if r.IntN(2) == 0 {
				b[at] ^= 1 << r.IntN(8)
			} else {
				b[at] = byte(r.Uint32())
			}
		}
		exercise(t, fmt.Sprintf("seed %d, round %d", seed, round), b, mark)
		if t.Failed() {
			return
		}
	}
}

// The file is cut off under a store that is open: a refusal, not a bus error.
// Drop SetPanicOnFault and this crashes.
func TestView_SurvivesACutFile(t *testing.T) {
	data, mark := specimen(t)
	dir := t.TempDir()
	for name, b := range map[string][]byte{bolt.DataFile: data, bolt.MarkFile: mark} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, dir, bolt.Options{})
	if err := os.Truncate(filepath.Join(dir, bolt.DataFile), 4*pageSize); err != nil {
		t.Fatal(err)
	}
	read := func(r store.Reader) error {
		r.Scan([]byte("a"), []byte("z"), func(_, v []byte) bool { return bytes.Count(v, []byte("x")) == 0 })
		return nil
	}
	if err := db.View(ctx, read); !refusal.Has(err, refusal.StoreCorrupt) {
		t.Errorf("view: got %v", err)
	}
	if err := db.Update(ctx, func(tx store.Tx) error { return read(tx) }); !refusal.Has(err, refusal.StoreCorrupt) {
		t.Errorf("update: got %v", err)
	}
	db.Check(ctx, func(error) bool { return true })
	if err := db.Close(); err == nil {
		t.Log("closed without meeting the damage")
	}
}

// Check finds each kind of damage, in the file of a store that Open refuses too,
// and changes nothing.
func TestCheck_FindsDamage(t *testing.T) {
	data, mark := specimen(t)
	find := func(b []byte) (problems []error) {
		dir := memoryDir(t)
		defer os.RemoveAll(dir)
		for name, b := range map[string][]byte{bolt.DataFile: b, bolt.MarkFile: mark} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := bolt.CheckFile(ctx, dir, func(p error) bool { problems = append(problems, p); return true }); err != nil {
			t.Fatalf("check: %v", err)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, bolt.DataFile)); !bytes.Equal(after, b) {
			t.Error("the check has changed the file")
		}
		return problems
	}
	if p := find(data); len(p) != 0 {
		t.Fatalf("unharmed: %v", p)
	}
	blank := make([]byte, pageSize)
	missed := 0
	for page := range len(data) / pageSize {
		if bytes.Equal(data[page*pageSize:(page+1)*pageSize], blank) {
			continue
		}
		b := bytes.Clone(data)
		copy(b[page*pageSize:], blank)
		if len(find(b)) == 0 {
			missed++
		}
	}
	// Free pages and the inner pages of a long value may be anything.
	if all := len(data) / pageSize; missed > all*2/3 {
		t.Errorf("%d of %d zeroed pages were not found", missed, all)
	}
}
