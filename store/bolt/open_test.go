package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// Modes of what Open creates: others may pass through the folder to the worker
// socket in it, and read nothing.
func TestOpen_CreatesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	db := open(t, dir, bolt.Options{})
	defer closeStore(t, db)
	for name, want := range map[string]fs.FileMode{".": 0o711, bolt.DataFile: 0o600, bolt.LockFile: 0o600, bolt.MarkFile: 0o600,
		bolt.LogFiles[0]: 0o600, bolt.LogFiles[1]: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %o, want %o", name, got, want)
		}
	}
}

// A reader changes no byte, reads a store whose disk is read-only, and several
// may read at once.
func TestOpen_ReadOnlyChangesNothing(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	update(t, db, func(tx store.Tx) { tx.Put([]byte("k"), []byte("v")) })
	closeStore(t, db)
	files := []string{bolt.DataFile, bolt.LockFile, bolt.MarkFile}
	before := map[string][]byte{}
	for _, name := range files {
		before[name] = read(t, dir, name)
	}
	a, b := open(t, dir, bolt.Options{ReadOnly: true}), open(t, dir, bolt.Options{ReadOnly: true})
	for _, db := range []*bolt.DB{a, b} {
		view(t, db, func(r store.Reader) {
			if got := string(r.Get([]byte("k"))); got != "v" {
				t.Errorf("got %q", got)
			}
		})
		mustBeSound(t, db)
		if err := db.Update(ctx, func(store.Tx) error { return nil }); !refusal.Has(err, refusal.WrongState) {
			t.Errorf("update: got %v", err)
		}
	}
	if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
		t.Errorf("a writer beside readers: got %v", err)
	}
	closeStore(t, a)
	closeStore(t, b)
	for _, name := range files {
		if !bytes.Equal(read(t, dir, name), before[name]) {
			t.Errorf("%s has changed", name)
		}
	}
	if _, err := bolt.Open(t.TempDir(), bolt.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a store: got %v", err)
	}
}

// P9: the lease clock never runs backwards: not over restarts, crashes, reboots,
// or a monotonic clock that starts again below or above.
func TestNow_NeverRunsBackwards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := memoryDir(t)
		defer os.RemoveAll(dir)
		ns, boot := int64(1000), "boot-0"
		o := bolt.Options{Monotonic: func() (int64, string) { return ns, boot }}
		db := open(t, dir, o)
		stored := db.Now()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"tick", "update", "restart", "reboot", "namespace"}).Draw(rt, "step") {
			case "tick":
				before := db.Now()
				d := rapid.Int64Range(0, 1e12).Draw(rt, "ns")
				ns += d
				if got := db.Now(); got != before+d {
					rt.Fatalf("after %d ns: got %d, want %d", d, got, before+d)
				}
			case "update":
				update(t, db, func(tx store.Tx) { tx.Put([]byte("k"), nil) })
				stored = db.Now()
			case "restart":
				before := db.Now()
				closeStore(t, db)
				d := rapid.Int64Range(0, 1e9).Draw(rt, "ns")
				ns += d
				db = open(t, dir, o)
				if got := db.Now(); got != before+d {
					rt.Fatalf("restart within a boot, %d ns later: got %d, want %d", d, got, before+d)
				}
			case "reboot":
				before := db.Now()
				closeStore(t, db)
				ns, boot = rapid.Int64Range(0, 1e13).Draw(rt, "ns"), rapid.StringN(1, 4, 8).Draw(rt, "boot")+boot
				db = open(t, dir, o)
				if got := db.Now(); got != before {
					rt.Fatalf("reboot: got %d, want to go on from %d", got, before)
				}
			case "namespace":
				closeStore(t, db)
				ns = rapid.Int64Range(0, ns).Draw(rt, "ns")
				db = open(t, dir, o)
			}
			if got := db.Now(); got < stored {
				rt.Fatalf("%d after %d", got, stored)
			}
		}
		closeStore(t, db)
	})
}

// The machine's own clock goes on over a restart.
func TestNow_OfTheMachine(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	before := db.Now()
	closeStore(t, db)
	db = open(t, dir, bolt.Options{})
	defer closeStore(t, db)
	after := db.Now()
	if runtime.GOOS == "linux" && after <= before || after < before {
		t.Errorf("got %d after %d", after, before)
	}
}

// Check and Backup run beside updates, and see one sound state; a backup that is
// put in place is a store.
func TestBackup_IsAStore(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				update(t, db, func(tx store.Tx) {
					tx.Add([]byte("n"), 1)
					n := tx.Append('l', make([]byte, 300))
					if n > 50 {
						tx.Delete(append([]byte("l"), make([]byte, 8)...))
					}
				})
			}
		})
	}
	var token uint64
	for range 20 {
		mustBeSound(t, db)
		token, _, _ = mintOne(t, db)
	}
	restored := t.TempDir()
	var b bytes.Buffer
	if err := db.Backup(ctx, &b, "", nil); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Backup(stopped, &bytes.Buffer{}, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that is called off: got %v", err)
	}
	if s := db.Stats(); s.Commits == 0 || s.Functions < s.Commits || s.Bytes == 0 || s.FileSize == 0 || s.PageSize == 0 {
		t.Errorf("stats: %+v", s)
	}
	closeStore(t, db)

	write(t, restored, bolt.DataFile, b.Bytes())
	if _, err := bolt.Open(restored, bolt.Options{}); !refusal.Has(err, refusal.StoreRolledBack) {
		t.Errorf("a copy without a mark: got %v", err)
	}
	db = open(t, restored, bolt.Options{AcceptRollback: true})
	defer closeStore(t, db)
	mustBeSound(t, db)
	view(t, db, func(r store.Reader) {
		entries := int64(0)
		r.Scan([]byte("l"), nil, func(_, _ []byte) bool { entries++; return true })
		if n := r.Sum([]byte("n")); entries < n {
			t.Errorf("%d entries and a counter of %d: not one state", entries, n)
		}
	})
	if n, _, _ := mintOne(t, db); n <= token {
		t.Errorf("token %d after %d", n, token)
	}
}

// Close waits for what runs, and then refuses.
func TestClose_WaitsForUpdates(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	running, finish := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Update(ctx, func(tx store.Tx) error {
			close(running)
			<-finish
			tx.Put([]byte("k"), []byte("v"))
			return nil
		}); err != nil {
			t.Errorf("the update that ran: %v", err)
		}
	})
	<-running
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("close did not wait: %v", err)
	default:
	}
	close(finish)
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	wg.Wait()
	if err := db.Update(ctx, func(store.Tx) error { return nil }); !refusal.Has(err, refusal.Unavailable) {
		t.Errorf("update after close: got %v", err)
	}
	if err := db.View(ctx, func(store.Reader) error { return nil }); !refusal.Has(err, refusal.Unavailable) {
		t.Errorf("view after close: got %v", err)
	}
	db = open(t, dir, bolt.Options{})
	defer closeStore(t, db)
	view(t, db, func(r store.Reader) {
		if r.Get([]byte("k")) == nil {
			t.Error("the update that ran is gone")
		}
	})
}

// A function that ends its goroutine (t.FailNow does) takes its own caller with
// it and nothing else.
func TestUpdate_SurvivesGoexit(t *testing.T) {
	db := open(t, t.TempDir(), bolt.Options{})
	defer closeStore(t, db)
	var wg sync.WaitGroup
	wg.Go(func() {
		db.Update(ctx, func(tx store.Tx) error {
			tx.Put([]byte("k1"), nil)
			runtime.Goexit()
			return nil
		})
		t.Error("the caller went on")
	})
	wg.Wait()
	update(t, db, func(tx store.Tx) {
		if tx.Get([]byte("k1")) != nil {
			t.Error("the function has left something behind")
		}
		tx.Put([]byte("k2"), nil)
	})
}
