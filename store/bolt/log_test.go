package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// crash returns a folder with what is on disk of the store in dir, which nobody
// writes now: what a crash at this moment leaves.
func crash(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	for name, b := range files(t, dir) {
		write(t, left, name, b)
	}
	write(t, left, bolt.MarkFile, read(t, dir, bolt.MarkFile))
	return left
}

// putNumbers makes one update for each number in [from, to).
func putNumbers(t *testing.T, db *bolt.DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		update(t, db, func(tx store.Tx) {
			tx.Put(fmt.Appendf(nil, "k%04d", i), bytes.Repeat([]byte("v"), 40))
			tx.Delete(fmt.Appendf(nil, "k%04d", i-5))
			tx.Add([]byte("n"), 1)
		})
	}
}

// mustHaveNumbers fails the test unless db is as after putNumbers from 0 to n.
func mustHaveNumbers(t *testing.T, db *bolt.DB, n int) {
	t.Helper()
	view(t, db, func(r store.Reader) {
		var want, got, back []string
		for i := max(0, n-5); i < n; i++ {
			want = append(want, fmt.Sprintf("k%04d", i))
		}
		r.Scan([]byte("k"), nil, func(k, _ []byte) bool { got = append(got, string(k)); return true })
		r.ScanBack([]byte("k"), nil, func(k, _ []byte) bool { back = append([]string{string(k)}, back...); return true })
		if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(back) != fmt.Sprint(want) || r.Sum([]byte("n")) != int64(n) {
			t.Errorf("got %v, backwards %v, counter %d; want %v, counter %d", got, back, r.Sum([]byte("n")), want, n)
		}
	})
}

// records returns where the records of a log file lie that were written since it was
// last begun, the head first: pairs of offset and length.
func records(t *testing.T, b []byte) (at [][2]int) {
	t.Helper()
	salt := binary.BigEndian.Uint64(b[8:])
	for i := 0; i+32 <= len(b) && binary.BigEndian.Uint64(b[i+8:]) == salt; {
		n := int(binary.BigEndian.Uint32(b[i+4:]))
		at = append(at, [2]int{i, n})
		i += (n + 7) / 8 * 8
	}
	return at
}

// P2.4: what was confirmed and is in the log alone is there after a crash, for who
// opens the store for reading as for who opens it for writing, in a backup made of
// what the crash left, and again after a crash right behind the opening. Opening for
// reading changes nothing.
func TestOpen_ReplaysTheLog(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 30)
	left := crash(t, dir)
	closeStore(t, db)

	before := files(t, left)
	reader := open(t, left, bolt.Options{ReadOnly: true})
	mustHaveNumbers(t, reader, 30)
	mustBeSound(t, reader)
	file := backup(t, reader)
	closeStore(t, reader)
	for name, b := range files(t, left) {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("opening for reading has changed %s", name)
		}
	}
	restored := restoreStore(t, t.TempDir(), file, bolt.Options{})
	mustHaveNumbers(t, restored, 30)
	closeStore(t, restored)

	again := open(t, left, bolt.Options{})
	mustHaveNumbers(t, again, 30)
	left = crash(t, left)
	closeStore(t, again)
	again = open(t, left, bolt.Options{})
	mustHaveNumbers(t, again, 30)
	putNumbers(t, again, 30, 35)
	mustBeSound(t, again)
	closeStore(t, again)
	again = open(t, left, bolt.Options{})
	mustHaveNumbers(t, again, 35)
	closeStore(t, again)
}

// The last record is cut off, or any byte of it is another: it was not confirmed, and
// what was before it is there. The same of any record before is refused, store_corrupt,
// by everybody who looks, and nothing is changed; to accept it is to go on with what
// lies before it, in a new epoch. Stop at the first bad record without looking further
// and this fails.
func TestOpen_TellsATornRecordFromDamage(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 12)
	name := bolt.LogFiles[0]
	whole := read(t, dir, name)
	all := records(t, whole)
	if len(all) != 13 {
		t.Fatalf("%d records", len(all))
	}
	last := all[12]
	for _, torn := range []func(b []byte){
		func(b []byte) { clear(b[last[0]:]) },
		func(b []byte) { clear(b[last[0]+last[1]-1:]) },
		func(b []byte) { clear(b[last[0] : last[0]+100]) },
		func(b []byte) { b[last[0]+7] ^= 1 },
		func(b []byte) { b[last[0]] ^= 1 },
		func(b []byte) { b[last[0]+last[1]-1] ^= 0x80 },
	} {
		left, b := crash(t, dir), bytes.Clone(whole)
		torn(b)
		write(t, left, name, b)
		for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
			db := open(t, left, o)
			mustHaveNumbers(t, db, 11)
			closeStore(t, db)
		}
	}
	for n := range 12 {
		left, b := crash(t, dir), bytes.Clone(whole)
		b[all[n][0]+all[n][1]/2] ^= 1
		write(t, left, name, b)
		want := refusal.StoreCorrupt
		if n == 0 { // the head: this is not the log of that database
			want = refusal.StoreRolledBack
		}
		before := files(t, left)
		for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
			if _, err := bolt.Open(left, o); !refusal.Has(err, want) || refusal.Of(err).Next == "" {
				t.Errorf("record %d: got %v, want %s", n, err, want)
			}
		}
		found := 0
		if err := bolt.CheckFile(ctx, left, func(error) bool { found++; return true }); err != nil || found == 0 {
			t.Errorf("record %d: the check found %d problems, %v", n, found, err)
		}
		for name, b := range files(t, left) {
			if !bytes.Equal(b, before[name]) {
				t.Errorf("record %d: the refusal has changed %s", n, name)
			}
		}
		db := open(t, left, bolt.Options{AcceptRollback: true})
		mustHaveNumbers(t, db, max(n-1, 0))
		if db.Epoch() == 0 {
			t.Errorf("record %d: no new epoch", n)
		}
		closeStore(t, db)
	}
	closeStore(t, db)
}

// P7: a database and a log of different times, or stores, are refused: each older than
// the other, either missing, or somebody else's. Leave the salt or the number of the
// batch out of replay and one of them opens.
func TestOpen_RefusesAnotherLog(t *testing.T) {
	dir := t.TempDir()
	small := bolt.Options{LogSize: 4 << 10}
	db := open(t, dir, small)
	putNumbers(t, db, 0, 5)
	early := files(t, dir)
	putNumbers(t, db, 5, 100) // many turns of the log
	bolt.WaitCheckpoint(db)
	late := crash(t, dir)
	closeStore(t, db)

	other := t.TempDir()
	db = open(t, other, small)
	putNumbers(t, db, 0, 100)
	bolt.WaitCheckpoint(db)
	foreign := files(t, other)
	closeStore(t, db)

	for name, harm := range map[string]func(t *testing.T, dir string){
		"older database": func(t *testing.T, dir string) { write(t, dir, bolt.DataFile, early[bolt.DataFile]) },
		"older log": func(t *testing.T, dir string) {
			for _, name := range bolt.LogFiles {
				write(t, dir, name, early[name])
			}
		},
		"log of another store": func(t *testing.T, dir string) {
			for _, name := range bolt.LogFiles {
				write(t, dir, name, foreign[name])
			}
		},
		"log lost": func(t *testing.T, dir string) {
			for _, name := range bolt.LogFiles {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"log emptied": func(t *testing.T, dir string) {
			for _, name := range bolt.LogFiles {
				write(t, dir, name, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := crash(t, late)
			harm(t, left)
			for range 2 {
				// Who reads would be told a state of before as if it were the newest.
				for _, o := range []bolt.Options{{}, {ReadOnly: true}} {
					if _, err := bolt.Open(left, o); !refusal.Has(err, refusal.StoreRolledBack) {
						t.Fatalf("read only %v: got %v", o.ReadOnly, err)
					}
				}
			}
			problems := 0
			if err := bolt.CheckFile(ctx, left, func(error) bool { problems++; return true }); err != nil || problems == 0 {
				t.Errorf("the check finds %d problems, %v", problems, err)
			}
			db := open(t, left, bolt.Options{AcceptRollback: true})
			if db.Epoch() == 0 {
				t.Error("no new epoch")
			}
			mustBeSound(t, db)
			closeStore(t, db)
		})
	}
	t.Run("as it was", func(t *testing.T) {
		db := open(t, late, bolt.Options{})
		mustHaveNumbers(t, db, 100)
		closeStore(t, db)
	})
}

// wear opens the store in args[0] with a small log and makes updates, some of them
// too large for it, until it kills itself at the args[2]-th time that it reaches the
// step args[1]. It prints the number of each update that was confirmed.
func wear(args []string) {
	left, err := strconv.Atoi(args[2])
	exitOn(err)
	var mu sync.Mutex
	db, err := bolt.Open(args[0], bolt.WithSteps(bolt.Options{LogSize: 4 << 10}, func(step string) {
		mu.Lock()
		defer mu.Unlock()
		if step == args[1] {
			if left--; left == 0 {
				suicide()
			}
		}
	}))
	exitOn(err)
	n := 0
	exitOn(db.View(ctx, func(r store.Reader) error { n = int(r.Sum([]byte("n"))); return nil }))
	for ; n < 500; n++ {
		exitOn(db.Update(ctx, func(tx store.Tx) error {
			tx.Put(fmt.Appendf(nil, "k%04d", n), nil)
			tx.Delete(fmt.Appendf(nil, "k%04d", n-5))
			tx.Add([]byte("n"), 1)
			if n%67 == 66 {
				tx.Put([]byte("large"), make([]byte, 3<<10))
			}
			return nil
		}))
		fmt.Println(n)
	}
	exitOn(db.Close())
}

// P2.4: a SIGKILL in every gap of a checkpoint, at every time, and again on top of it:
// what was confirmed is there, in order, and nothing after the one that was under way.
// Have a checkpoint name the old log file, or forget what is in the second one, and this
// fails.
func TestCheckpoint_CrashInEveryGap(t *testing.T) {
	for _, step := range []string{"log begun", "log turned", "log moved", "log retired"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			confirmed := 0
			for _, time := range []int{1, 2, 3, 1, 5, 2} {
				if step == "log begun" {
					time = 1
				}
				c := start(t, "wear", dir, step, strconv.Itoa(time))
				for s := c.line(); s != ""; s = c.line() {
					n, err := strconv.Atoi(s)
					if err != nil {
						t.Fatal(err)
					}
					confirmed = n + 1
				}
				if err := c.wait(); err == nil {
					t.Fatalf("the child did not die at %q", step)
				}
				for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
					db, err := bolt.Open(dir, o)
					if o.ReadOnly && errors.Is(err, fs.ErrNotExist) {
						continue // it died before there was a store
					}
					if err != nil {
						t.Fatal(err)
					}
					n := 0
					view(t, db, func(r store.Reader) { n = int(r.Sum([]byte("n"))) })
					if n != confirmed && n != confirmed+1 {
						t.Fatalf("%d are there, %d were confirmed", n, confirmed)
					}
					mustHaveNumbers(t, db, n)
					mustBeSound(t, db)
					if o.ReadOnly || time%2 == 0 {
						closeStore(t, db)
						continue
					}
					left := crash(t, dir) // the next child finds a store that was left open
					closeStore(t, db)
					dir = left
				}
			}
		})
	}
}

// Commits go on in the second log file while a checkpoint runs, and wait for it when that
// is full, too: a crash right then loses nothing, in the first checkpoint of a life or in
// the next, which finds the other file in use. Use a log file again before its checkpoint
// is over, or have a checkpoint that is over name the file that it emptied, and this
// fails.
func TestCheckpoint_KeepsItsLogUntilItIsOver(t *testing.T) {
	for _, held := range []int{1, 2} {
		dir, left, n, outer := t.TempDir(), "", 0, t
		synctest.Test(t, func(t *testing.T) {
			hold, moves, armed := make(chan struct{}), 0, false
			db := open(t, dir, bolt.WithMoves(bolt.Options{LogSize: 4 << 10}, func(commit func() error) error {
				if armed {
					if moves++; moves == held {
						<-hold
					}
				}
				return commit()
			}))
			armed = true
			go func() {
				for i := range 400 {
					update(t, db, func(tx store.Tx) {
						tx.Put(fmt.Appendf(nil, "k%04d", i), nil)
						tx.Delete(fmt.Appendf(nil, "k%04d", i-5))
						tx.Add([]byte("n"), 1)
					})
					n++
				}
			}()
			synctest.Wait() // it is held up, behind the checkpoint
			if n < 20*held || n == 400 || moves != held {
				t.Errorf("%d updates were confirmed, and %d checkpoints begun", n, moves)
			}
			mustHaveNumbers(t, db, n)
			left = crash(outer, dir)
			confirmed := n
			close(hold)
			synctest.Wait()
			mustHaveNumbers(t, db, 400)
			closeStore(t, db)
			n = confirmed
		})
		for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
			db := open(t, left, o)
			mustHaveNumbers(t, db, n)
			mustBeSound(t, db)
			closeStore(t, db)
		}
	}
}

// A checkpoint for which there is no room is made in steps, and a crash between two of
// them loses nothing: what it has not moved yet is in the log file that the part names.
// Have a part name the file in use and this fails.
func TestCheckpoint_InSteps(t *testing.T) {
	dir, left, n, outer := t.TempDir(), "", 0, t
	synctest.Test(t, func(t *testing.T) {
		var moves int
		armed, hold := false, make(chan struct{})
		db := open(t, dir, bolt.WithMoves(bolt.Options{LogSize: 4 << 10}, func(commit func() error) error {
			if !armed {
				return commit()
			}
			if moves++; moves == 1 {
				return &fs.PathError{Op: "write", Path: bolt.DataFile, Err: syscall.ENOSPC}
			}
			err := commit()
			<-hold
			return err
		}))
		armed = true
		go func() {
			putNumbers(t, db, 0, 200)
		}()
		synctest.Wait() // it is held up, behind the first step
		if moves != 2 {
			t.Fatalf("the checkpoint was tried %d times", moves)
		}
		view(t, db, func(r store.Reader) { n = int(r.Sum([]byte("n"))) })
		left = crash(outer, dir)
		close(hold)
		synctest.Wait()
		mustHaveNumbers(t, db, 200)
		closeStore(t, db)
	})
	for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
		db := open(t, left, o)
		mustHaveNumbers(t, db, n)
		mustBeSound(t, db)
		closeStore(t, db)
	}
}

// Views see one state while checkpoints come and go: as many keys as the counter says,
// and the same at the end as at the beginning. Forget, in DB.begin, that a batch can be in
// mailbox.db before it is visible, and this fails.
func TestView_SeesOneStateDuringCheckpoints(t *testing.T) {
	db := open(t, t.TempDir(), bolt.Options{LogSize: 2 << 10})
	defer closeStore(t, db)
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				view(t, db, func(r store.Reader) {
					for range 2 {
						n := int64(0)
						r.Scan([]byte("k"), nil, func(k, v []byte) bool {
							if n++; !bytes.HasSuffix(v, k) {
								t.Errorf("%s: %q", k, v)
							}
							return true
						})
						if sum := r.Sum([]byte("keys")); n != sum {
							t.Errorf("%d keys, and the counter says %d", n, sum)
						}
					}
				})
			}
		})
	}
	for w := range 3 {
		writers.Go(func() {
			for i := range 150 {
				size := 10
				if i%31 == 0 {
					size = 2 << 10 // stored without the log
				}
				update(t, db, func(tx store.Tx) {
					key := fmt.Appendf(nil, "k%d-%d", w, i)
					tx.Put(key, append(make([]byte, size), key...))
					tx.Add([]byte("keys"), 1)
					if old := fmt.Appendf(nil, "k%d-%d", w, i-i%7-3); tx.Get(old) != nil {
						tx.Delete(old)
						tx.Add([]byte("keys"), -1)
					}
				})
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if s := db.Stats(); s.Checkpoints < 5 {
		t.Errorf("only %d checkpoints", s.Checkpoints)
	}
	mustBeSound(t, db)
}

// H1, 4.6 #66: a checkpoint finds no room. What can wait is refused, disk_full, what
// is essential goes on in the log, and what was confirmed is there, also after a crash;
// with room again service goes on by itself. Forget that a checkpoint failed and this
// fails.
func TestCheckpoint_WaitsForRoom(t *testing.T) {
	var mu sync.Mutex
	full := false
	fill := func(is bool) { mu.Lock(); full = is; mu.Unlock() }
	o := bolt.WithMoves(bolt.Options{LogSize: 8 << 10}, func(commit func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if full {
			return &fs.PathError{Op: "write", Path: "mailbox.db", Err: syscall.ENOSPC}
		}
		return commit()
	})
	dir := t.TempDir()
	db := open(t, dir, o)
	fill(true)
	n, refused := 0, error(nil)
	for ; refused == nil && n < 1000; n++ {
		refused = db.Update(ctx, func(tx store.Tx) error {
			tx.Put(fmt.Appendf(nil, "k%04d", n), nil)
			tx.Delete(fmt.Appendf(nil, "k%04d", n-5))
			tx.Add([]byte("n"), 1)
			return nil
		})
		bolt.WaitCheckpoint(db)
	}
	n--
	if !refusal.Has(refused, refusal.DiskFull) || n < 20 {
		t.Fatalf("update %d: got %v", n, refused)
	}
	essential := func() error {
		return db.Update(store.Essential(ctx), func(tx store.Tx) error { tx.Put([]byte("end"), []byte("v")); return nil })
	}
	for range 3 {
		if err := essential(); err != nil {
			t.Fatalf("an essential update: %v", err)
		}
	}
	mustHaveNumbers(t, db, n)
	left := crash(t, dir)
	if err := db.Close(); !refusal.Has(err, refusal.DiskFull) {
		t.Errorf("close: got %v", err)
	}
	for _, d := range []string{dir, left} {
		fill(true)
		if _, err := bolt.Open(d, o); !refusal.Has(err, refusal.DiskFull) {
			t.Errorf("open on a full disk: got %v", err)
		}
		reader := open(t, d, bolt.Options{ReadOnly: true})
		mustHaveNumbers(t, reader, n)
		mustHaveKey(t, reader, "end", true)
		closeStore(t, reader)
		fill(false)
		db := open(t, d, o)
		mustHaveNumbers(t, db, n)
		mustHaveKey(t, db, "end", true)
		// And the other way: there is room again while it is open.
		fill(true)
		i := n
		for ; i < n+1000; i++ {
			if db.Update(ctx, func(tx store.Tx) error { tx.Put([]byte("x"), []byte("v")); return nil }) != nil {
				break
			}
			bolt.WaitCheckpoint(db)
		}
		fill(false)
		update(t, db, func(tx store.Tx) { tx.Put([]byte("x"), []byte("v")) })
		mustBeSound(t, db)
		closeStore(t, db)
	}
}

// P4.10: a checkpoint's sync fails, whether what it was to sync is stored or not: the
// store stops, though nothing that was confirmed is in doubt; opened again it is there.
func TestCheckpoint_StopsWhenOutcomeIsUnknown(t *testing.T) {
	for name, c := range map[string]func(commit func() error) error{
		"stored":     func(commit func() error) error { return errors.Join(commit(), errInjected) },
		"sync":       func(func() error) error { return &fs.PathError{Op: "sync", Err: syscall.EIO} },
		"both":       func(commit func() error) error { return errors.Join(commit(), syscall.EIO) },
		"panic":      func(func() error) error { panic("injected") },
		"late panic": func(commit func() error) error { commit(); panic("injected") },
	} {
		t.Run(name, func(t *testing.T) {
			dir, bad := t.TempDir(), make(chan struct{}, 1)
			db := open(t, dir, bolt.WithMoves(bolt.Options{LogSize: 4 << 10}, func(commit func() error) error {
				select {
				case <-bad:
					return c(commit)
				default:
					return commit()
				}
			}))
			bad <- struct{}{}
			n, err := 0, error(nil)
			for ; err == nil; n++ {
				err = db.Update(ctx, func(tx store.Tx) error {
					tx.Put(fmt.Appendf(nil, "k%04d", n), nil)
					tx.Delete(fmt.Appendf(nil, "k%04d", n-5))
					tx.Add([]byte("n"), 1)
					return nil
				})
				bolt.WaitCheckpoint(db)
			}
			if !refusal.Has(err, refusal.OutcomeUnknown) || isOpen(db.Failed()) {
				t.Errorf("got %v", err)
			}
			if err := db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			db = open(t, dir, bolt.Options{})
			mustHaveNumbers(t, db, n-1)
			mustBeSound(t, db)
			closeStore(t, db)
		})
	}
}

// A store of the version before, without a log, opens as it is; and is refused by that
// version from then on, as one of a newer schema (see key.go).
func TestOpen_TakesOverASchemaWithoutALog(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 10)
	token, sequence, entry := mintOne(t, db)
	closeStore(t, db)
	for _, name := range bolt.LogFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	schema := func(change func(b []byte) []byte) (was uint32) {
		d, err := bbolt.Open(filepath.Join(dir, bolt.DataFile), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Update(func(tx *bbolt.Tx) error {
			b := bytes.Clone(tx.Bucket([]byte("meta")).Get([]byte("state")))
			was = binary.BigEndian.Uint32(b)
			return tx.Bucket([]byte("meta")).Put([]byte("state"), change(b))
		}); err != nil {
			t.Fatal(err)
		}
		return was
	}
	schema(func(b []byte) []byte {
		binary.BigEndian.PutUint32(b, 1)
		b = append(b[:92:92], b[100:len(b)-4]...)
		return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	})
	for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
		db := open(t, dir, o)
		mustHaveNumbers(t, db, 10)
		mustBeSound(t, db)
		if !o.ReadOnly {
			if a, b, c := mintOne(t, db); a != token+1 || b != sequence+1 || c != entry+1 {
				t.Errorf("numbers %d %d %d after %d %d %d", a, b, c, token, sequence, entry)
			}
		}
		closeStore(t, db)
	}
	if was := schema(func(b []byte) []byte { return b }); was != bolt.Schema {
		t.Errorf("schema %d after it was opened", was)
	}
}

// The log takes a bounded place, whatever goes through it, and a commit that is larger
// than the log is stored all the same.
func TestUpdate_KeepsTheLogSmall(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{LogSize: 16 << 10})
	for i := range 300 {
		size := 500
		if i%50 == 0 {
			size = store.MaxBytes - 100
		}
		update(t, db, func(tx store.Tx) { tx.Put(fmt.Appendf(nil, "k%d", i), make([]byte, size)) })
	}
	for _, name := range bolt.LogFiles {
		if n := len(read(t, dir, name)); n > 24<<10 {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	view(t, db, func(r store.Reader) {
		n := 0
		r.Scan([]byte("k"), nil, func(_, v []byte) bool { n += len(v); return true })
		if want := 294*500 + 6*(store.MaxBytes-100); n != want {
			t.Errorf("%d bytes are there, want %d", n, want)
		}
	})
	mustBeSound(t, db)
	closeStore(t, db)
}
