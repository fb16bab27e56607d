package bolt_test

import (
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// patience is how long it takes until something that must come is taken to hang.
const patience = 10 * time.Minute

// asynchronously writes n bytes under key, and need not wait until they are durable.
func asynchronously(t *testing.T, db *bolt.DB, key string, n int) {
	t.Helper()
	if err := db.Update(ctx, func(tx store.Tx) error {
		tx.Put([]byte(key), make([]byte, n))
		tx.Asynchronous()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// P3.12: an asynchronous update that no other one follows is synced soon, by itself. A sync
// that fails leaves it open what is on the disk, and the store is given up (the lie "synced
// after all"). Leave out the timer, or the verdict, and this fails.
func TestUpdate_SyncsAnAsynchronousOneSoon(t *testing.T) {
	db, f, _ := openFaulty(t)
	defer db.Close()
	// The update's own commit passes, and the one that is to sync it, which may come before
	// this goroutine goes on, fails.
	f.set(func(commit func() error) error {
		f.set(func(func() error) error { return errInjected })
		return commit()
	})
	asynchronously(t, db, "late", 1)
	select {
	case <-db.Failed():
	case <-time.After(patience):
		t.Fatal("nothing was synced")
	}
	if err := db.Update(ctx, writeNew); !refusal.Has(err, refusal.OutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

// P3.12: where a checkpoint finds no room, so that the batch that is to sync an asynchronous
// update cannot begin, it is synced once there is room. Leave out that syncRest tries again,
// and this fails. All runs on the test's own clock, so that nothing is synced before the log
// is full, however slow the machine is.
func TestUpdate_SyncsAnAsynchronousOneOnceThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var tries, syncs atomic.Int32
		f := &faults{}
		db := open(t, dir, bolt.WithMoves(bolt.Options{LogSize: 8 << 10, Commit: f.commit}, func(commit func() error) error {
			if !full.Load() {
				return commit()
			}
			tries.Add(1)
			return &fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.ENOSPC}
		}))
		defer closeStore(t, db)
		full.Store(true)
		asynchronous := func() error {
			return db.Update(store.Essential(ctx), func(tx store.Tx) error {
				tx.Put([]byte("late"), make([]byte, 500))
				tx.Asynchronous()
				return nil
			})
		}
		refused := asynchronous()
		for n := 0; refused == nil && n < 1000; n++ {
			refused = asynchronous()
		}
		if !refusal.Has(refused, refusal.DiskFull) {
			t.Fatalf("got %v", refused)
		}
		before := tries.Load()
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if tries.Load() == before {
			t.Error("no sync was tried")
		}
		f.set(func(commit func() error) error { syncs.Add(1); return commit() })
		full.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if syncs.Load() != 1 {
			t.Error("nothing was synced")
		}
	})
}

// P3.12: what does not go to the log behind an asynchronous update has that synced first,
// since nothing tells afterwards that it should be there: another log file, and an update
// too large for the log.
func TestUpdate_SyncsAnAsynchronousOneFirst(t *testing.T) {
	const size = 8 << 10
	for name, c := range map[string]struct {
		before       []int // bytes of each update before
		asynchronous bool
		then         int // of the one that is not
		syncs        int
	}{
		"in the same file":         {[]int{1, 1}, true, 1, 1},
		"the log turns":            {[]int{size / 3, size / 3, size / 3}, true, 1, 2},
		"it turns behind others":   {[]int{size / 3, size / 3, size / 3}, false, 1, 1},
		"too large for it":         {[]int{1}, true, size, 2},
		"too large, behind others": {[]int{1}, false, size, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, syncs := &faults{}, 0
			db := open(t, t.TempDir(), bolt.Options{Commit: f.commit, LogSize: size, SyncDelay: -1})
			defer closeStore(t, db)
			for _, n := range c.before {
				if c.asynchronous {
					asynchronously(t, db, "before", n)
				} else {
					update(t, db, func(tx store.Tx) { tx.Put([]byte("before"), make([]byte, n)) })
				}
			}
			var count func(commit func() error) error
			count = func(commit func() error) error {
				syncs++
				defer f.set(count)
				return commit()
			}
			f.set(count)
			update(t, db, func(tx store.Tx) { tx.Put([]byte("then"), make([]byte, c.then)) })
			if syncs != c.syncs {
				t.Errorf("%d syncs, want %d", syncs, c.syncs)
			}
		})
	}
}

// The end of the process takes nothing of an asynchronous update, and closing in order
// neither.
func TestUpdate_KeepsAnAsynchronousOne(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		dir := t.TempDir()
		db := open(t, dir, bolt.Options{SyncDelay: -1})
		asynchronously(t, db, "late", 1)
		update(t, db, func(tx store.Tx) { tx.Put([]byte("between"), []byte("v")) })
		asynchronously(t, db, "later", 1)
		if !orderly {
			dir = crash(t, dir)
		}
		closeStore(t, db)
		db = open(t, dir, bolt.Options{})
		view(t, db, func(r store.Reader) {
			for _, key := range []string{"late", "between", "later"} {
				if r.Get([]byte(key)) == nil {
					t.Errorf("closed in order %v: %s is gone", orderly, key)
				}
			}
		})
		closeStore(t, db)
	}
}
