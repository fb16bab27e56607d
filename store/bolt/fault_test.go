package bolt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

var errInjected = errors.New("injected")

// faults is a Commit hook that a test can set while the store is open.
type faults struct {
	mu   sync.Mutex
	next func(commit func() error) error // for one commit
}

func (f *faults) commit(commit func() error) error {
	f.mu.Lock()
	fault := f.next
	f.next = nil
	f.mu.Unlock()
	if fault == nil {
		return commit()
	}
	return fault(commit)
}

func (f *faults) set(fault func(commit func() error) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = fault
}

// openFaulty opens a store that holds "old", with a hook for faults.
func openFaulty(t *testing.T) (*bolt.DB, *faults, string) {
	t.Helper()
	f, dir := &faults{}, t.TempDir()
	db := open(t, dir, bolt.Options{Commit: f.commit})
	update(t, db, func(tx store.Tx) {
		tx.Put([]byte("old"), []byte("v"))
		tx.Add([]byte("n"), 1)
		tx.Mint("r")
	})
	return db, f, dir
}

func writeNew(tx store.Tx) error {
	tx.Put([]byte("new"), []byte("v"))
	tx.Add([]byte("n"), 1)
	tx.Append('l', nil)
	tx.Mint("r")
	return nil
}

func isOpen(failed <-chan struct{}) bool {
	select {
	case <-failed:
		return false
	default:
		return true
	}
}

// The lie "failed, and is not stored": a write that failed, of which a look at
// the file proves that nothing is stored. The store goes on, and a full disk says
// so. Take every failure for an unknown outcome and this fails; so it does if the
// failed batch leaves anything in memory.
func TestUpdate_GoesOnWhenProvenNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want refusal.Category
	}{
		"no space":   {&fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.ENOSPC}, refusal.DiskFull},
		"quota":      {&fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.EDQUOT}, refusal.DiskFull},
		"too large":  {&fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.EFBIG}, refusal.DiskFull},
		"input":      {&fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.EIO}, refusal.Failed},
		"some error": {errInjected, refusal.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			db, f, dir := openFaulty(t)
			f.set(func(func() error) error { return c.err })
			err := db.Update(ctx, writeNew)
			r := refusal.Of(err)
			if r == nil || r.Category != c.want || !errors.Is(err, c.err) || r.Next == "" {
				t.Fatalf("got %v, want category %s", err, c.want)
			}
			if r.Retryable != (c.want == refusal.DiskFull) {
				t.Errorf("retryable: got %v", r.Retryable)
			}
			if !isOpen(db.Failed()) {
				t.Error("Failed is closed although the outcome is known")
			}
			for _, reopen := range []bool{false, true} {
				if reopen {
					closeStore(t, db)
					db = open(t, dir, bolt.Options{})
				}
				view(t, db, func(r store.Reader) {
					if r.Get([]byte("new")) != nil || r.Get([]byte("old")) == nil || r.Sum([]byte("n")) != 1 {
						t.Error("the failed update has left something behind")
					}
				})
			}
			update(t, db, func(tx store.Tx) {
				if n := tx.Mint("r"); n <= 2 {
					t.Errorf("token %d, which a failed update may have seen", n)
				}
				writeNew(tx)
			})
			mustBeSound(t, db)
			closeStore(t, db)
		})
	}
}

// P4.10, the lie "failed, but is stored", and every failure of a sync: the outcome
// is unknown, and the store says so to everybody from then on. Go on after any of
// them and this fails.
func TestUpdate_StopsWhenOutcomeIsUnknown(t *testing.T) {
	syncError := &fs.PathError{Op: "sync", Path: "mailbox.db", Err: syscall.EIO}
	for name, c := range map[string]struct {
		fault  func(commit func() error) error
		stored bool
	}{
		"stored": {func(commit func() error) error { return errors.Join(commit(), errInjected) }, true},
		"stored, no space": {func(commit func() error) error {
			return errors.Join(commit(), &fs.PathError{Op: "write", Err: syscall.ENOSPC})
		}, true},
		"sync, stored":          {func(commit func() error) error { return errors.Join(commit(), syncError) }, true},
		"sync, not stored":      {func(func() error) error { return syncError }, false},
		"fdatasync, not stored": {func(func() error) error { return syscall.EIO }, false},
		"fdatasync, no space":   {func(func() error) error { return syscall.ENOSPC }, false},
		"sync of growth, not stored": {func(func() error) error {
			return errors.New("file sync error: sync mailbox.db: no space left on device")
		}, false},
		"panic of bbolt before":         {func(func() error) error { panic("injected") }, false},
		"panic of bbolt after the fact": {func(commit func() error) error { commit(); panic("injected") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, f, dir := openFaulty(t)
			f.set(c.fault)
			err := db.Update(ctx, writeNew)
			if !refusal.Has(err, refusal.OutcomeUnknown) {
				t.Fatalf("got %v, want outcome_unknown", err)
			}
			if isOpen(db.Failed()) {
				t.Error("Failed is not closed")
			}
			ran := false
			if err := db.Update(ctx, func(store.Tx) error { ran = true; return nil }); !refusal.Has(err, refusal.OutcomeUnknown) || ran {
				t.Errorf("the next Update: got %v, ran %v", err, ran)
			}
			if err := db.View(ctx, func(store.Reader) error { ran = true; return nil }); !refusal.Has(err, refusal.OutcomeUnknown) || ran {
				t.Errorf("the next View: got %v, ran %v", err, ran)
			}
			if err := db.Check(ctx, func(error) bool { ran = true; return true }); !refusal.Has(err, refusal.OutcomeUnknown) || ran {
				t.Errorf("the next Check: got %v, ran %v", err, ran)
			}
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			// Recovery decides: whatever it is, it is whole.
			db = open(t, dir, bolt.Options{})
			defer closeStore(t, db)
			view(t, db, func(r store.Reader) {
				n := r.Sum([]byte("n"))
				if stored := r.Get([]byte("new")) != nil; stored != c.stored || stored != (n == 2) {
					t.Errorf("after reopening: new is there: %v, want %v; counter %d", stored, c.stored, n)
				}
			})
			update(t, db, func(tx store.Tx) {
				if n := tx.Mint("r"); n <= 2 {
					t.Errorf("token %d, which the unknown update may have stored", n)
				}
			})
			mustBeSound(t, db)
		})
	}
}

// All functions of a failed batch get the same answer, and those that failed by
// themselves keep their own.
func TestUpdate_AnswersTheWholeBatch(t *testing.T) {
	db, f, _ := openFaulty(t)
	defer closeStore(t, db)
	const callers = 20
	running, finish := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		db.Update(ctx, func(tx store.Tx) error { close(running); <-finish; return writeNew(tx) })
	})
	<-running
	// These wait behind the first, in one batch or a few; each batch fails.
	var failed [callers]error
	for i := range callers {
		wg.Go(func() {
			failed[i] = db.Update(ctx, func(tx store.Tx) error {
				if i%4 == 0 {
					return errInjected
				}
				f.set(func(func() error) error { return &fs.PathError{Op: "write", Err: syscall.ENOSPC} })
				tx.Put(fmt.Appendf(nil, "x%d", i), nil)
				return nil
			})
		})
	}
	close(finish)
	wg.Wait()
	for i, err := range failed {
		if i%4 == 0 && err != errInjected && !refusal.Has(err, refusal.DiskFull) || i%4 != 0 && !refusal.Has(err, refusal.DiskFull) {
			t.Errorf("caller %d: got %v", i, err)
		}
	}
	view(t, db, func(r store.Reader) {
		r.Scan([]byte("x"), nil, func(k, _ []byte) bool { t.Errorf("%s is stored", k); return true })
	})
}

// A refusal may not rest on a write of the same batch that was then not stored: of those
// who want one key, none is told that it is taken when nobody has it. Give the
// commit's error only to those without one of their own, and this fails.
func TestUpdate_RefusesForNothingUnstored(t *testing.T) {
	db, f, _ := openFaulty(t)
	defer closeStore(t, db)
	const callers = 20
	running, finish := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		db.Update(ctx, func(tx store.Tx) error { close(running); <-finish; return writeNew(tx) })
	})
	<-running
	var failed [callers]error
	for i := range callers {
		wg.Go(func() {
			failed[i] = db.Update(ctx, func(tx store.Tx) error {
				if tx.Get([]byte("xkey")) != nil {
					return errInjected
				}
				f.set(func(func() error) error { return &fs.PathError{Op: "write", Err: syscall.ENOSPC} })
				tx.Put([]byte("xkey"), nil)
				return nil
			})
		})
	}
	close(finish)
	wg.Wait()
	for i, err := range failed {
		if !refusal.Has(err, refusal.DiskFull) {
			t.Errorf("caller %d: got %v", i, err)
		}
	}
}

// fill puts values until the store refuses one, and returns the keys that it
// confirmed. Many callers at once share commits that fail.
func fill(t *testing.T, db *bolt.DB, prefix string) (confirmed []string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 10000 {
				key := fmt.Sprintf("%s-%d-%d", prefix, worker, i)
				err := db.Update(ctx, func(tx store.Tx) error {
					tx.Put([]byte(key), make([]byte, 20_000))
					tx.Add([]byte("keys"), 1)
					return nil
				})
				if err != nil {
					if r := refusal.Of(err); r.Category != refusal.DiskFull || !r.Retryable {
						t.Errorf("on a full disk: got %v", err)
					}
					return
				}
				mu.Lock()
				confirmed = append(confirmed, key)
				mu.Unlock()
			}
			t.Error("the disk does not fill up")
		})
	}
	wg.Wait()
	return confirmed
}

func mustHold(t *testing.T, db *bolt.DB, want []string) {
	t.Helper()
	slices.Sort(want)
	view(t, db, func(r store.Reader) {
		var got []string
		r.Scan([]byte("k"), nil, func(k, _ []byte) bool { got = append(got, string(k)); return true })
		if !slices.Equal(got, want) {
			t.Errorf("keys: got %d, want the %d that were confirmed", len(got), len(want))
		}
		if n := r.Sum([]byte("keys")); n != int64(len(got)) {
			t.Errorf("counter: got %d, want %d", n, len(got))
		}
	})
	mustBeSound(t, db)
}

// H1: on a disk that is really full every update is refused or stored whole, old
// values stay readable, deletions still work, and the store goes on when there is
// room, without being opened again. Then the same after opening it on the full
// disk.
func TestUpdate_SurvivesAFullDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		mount func(t *testing.T, dir string)
	}{
		{"tmpfs", mountTmpfs},
		{"ext4", mountExt4},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.mount(t, dir)
			ballast := dir + "/ballast"
			if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			db := open(t, dir+"/store", bolt.Options{})
			keys := fill(t, db, "k1")
			mustHold(t, db, keys)
			if !isOpen(db.Failed()) {
				t.Fatal("a full disk has stopped the store")
			}
			// Deleting needs no room that the store has not got.
			gone := keys[:2]
			update(t, db, func(tx store.Tx) {
				for _, k := range gone {
					tx.Delete([]byte(k))
				}
				tx.Add([]byte("keys"), -2)
			})
			keys = keys[2:]
			mustHold(t, db, keys)

			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			more := fill(t, db, "k2")
			if len(more) < 20 {
				t.Errorf("only %d updates with 2 MiB of room", len(more))
			}
			keys = append(keys, more...)
			mustHold(t, db, keys)
			err := db.Close() // may not find room for the mark
			if err != nil && !refusal.Has(err, refusal.DiskFull) {
				t.Errorf("close on a full disk: %v", err)
			}

			db, err = bolt.Open(dir+"/store", bolt.Options{})
			if err != nil {
				if !refusal.Has(err, refusal.DiskFull) {
					t.Fatalf("open on a full disk: %v", err)
				}
				db = open(t, dir+"/store", bolt.Options{ReadOnly: true})
			}
			mustHold(t, db, keys)
			if err := db.Close(); err != nil && !refusal.Has(err, refusal.DiskFull) {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// limited opens the store in args[0] under a limit on the size of files.
func limited(args []string) {
	const limit = 1 << 20
	// The log is too small for the values, so that each is stored without it.
	db, err := bolt.Open(args[0], bolt.Options{LogSize: 64 << 10})
	exitOn(err)
	exitOn(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}))
	for i := 0; ; i++ {
		err = db.Update(ctx, func(tx store.Tx) error {
			tx.Put(fmt.Appendf(nil, "k%d", i), make([]byte, 50_000))
			return nil
		})
		if err != nil {
			break
		}
	}
	fmt.Println(refusal.Of(err).Category, err)
	exitOn(db.Update(ctx, func(tx store.Tx) error { tx.Delete([]byte("k0")); return nil }))
	exitOn(db.Update(ctx, func(tx store.Tx) error { tx.Put([]byte("k0"), []byte("again")); return nil }))
	exitOn(db.Close())
}

// A limit on file size stops the file from growing, which bbolt reports in text
// only: this holds growthRefused against the bbolt in use.
func TestUpdate_RefusesBeyondTheFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	c := start(t, "limited", dir)
	if got := c.line(); !strings.HasPrefix(got, string(refusal.DiskFull)+" ") {
		t.Errorf("beyond the limit: got %q", got)
	}
	if err := c.wait(); err != nil {
		t.Errorf("the store did not go on: %v", err)
	}
	db := open(t, dir, bolt.Options{})
	defer closeStore(t, db)
	view(t, db, func(r store.Reader) {
		if got := string(r.Get([]byte("k0"))); got != "again" {
			t.Errorf("k0: got %q", got)
		}
	})
	mustBeSound(t, db)
}
