package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// backup writes a backup of db to a new file and returns its name.
func backup(t *testing.T, db *bolt.DB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup.db")
	var b bytes.Buffer
	var size int64
	if err := db.Backup(ctx, &b, t.TempDir(), func(n int64) { size = n }); err != nil {
		t.Fatal(err)
	}
	if size != int64(b.Len()) {
		t.Errorf("a backup of %d bytes says %d", b.Len(), size)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func restoreStore(t *testing.T, dir, from string, o bolt.Options) *bolt.DB {
	t.Helper()
	db, err := bolt.Restore(ctx, dir, from, bolt.Restoring{}, o)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return db
}

// withKey makes a store in a new folder that holds a key, and returns a backup of
// it and its folder; the store is closed.
func withKey(t *testing.T, key string) (file, dir string) {
	t.Helper()
	dir = t.TempDir()
	db := open(t, dir, bolt.Options{})
	update(t, db, func(tx store.Tx) { tx.Put([]byte(key), []byte("v")) })
	mintOne(t, db)
	file = backup(t, db)
	closeStore(t, db)
	return file, dir
}

func mustHaveKey(t *testing.T, db *bolt.DB, key string, want bool) {
	t.Helper()
	view(t, db, func(r store.Reader) {
		if got := r.Get([]byte(key)) != nil; got != want {
			t.Errorf("key %s is there: %v, want %v", key, got, want)
		}
	})
}

// P7, mistake 11, report 4.6 #70 (a restore moved numbers back): whatever lies in the
// folder, a restore brings the backup back, in an epoch whose numbers are greater than all that the folder and the backup's own
// store have given; and the store then opens without a refusal. Forget the mark, the
// database that is replaced, or the epoch, and one of the cases fails.
func TestRestore_StartsANewEpoch(t *testing.T) {
	// A backup, and then more work in its own folder.
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"closed": func(*testing.T, string) {},
		"crashed": func(t *testing.T, dir string) {
			c := start(t, "traffic", dir, "0")
			for range 20 {
				c.line()
			}
			c.kill()
		},
		"mark lost": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, bolt.MarkFile)); err != nil {
				t.Fatal(err)
			}
		},
		"mark damaged":     func(t *testing.T, dir string) { write(t, dir, bolt.MarkFile, []byte("x")) },
		"database damaged": func(t *testing.T, dir string) { write(t, dir, bolt.DataFile, []byte("x")) },
		"database lost": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, bolt.DataFile)); err != nil {
				t.Fatal(err)
			}
		},
		"restored before": func(t *testing.T, dir string) {
			file, _ := withKey(t, "b")
			db := restoreStore(t, dir, file, bolt.Options{})
			mintOne(t, db)
			closeStore(t, db)
		},
		"mark of another store": func(t *testing.T, dir string) {
			_, other := withKey(t, "b")
			write(t, dir, bolt.MarkFile, read(t, other, bolt.MarkFile))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := open(t, dir, bolt.Options{})
			update(t, db, func(tx store.Tx) { tx.Put([]byte("a"), []byte("v")) })
			file := backup(t, db)
			update(t, db, func(tx store.Tx) { tx.Put([]byte("after"), []byte("v")) })
			bolt.SkipTo(db, 3*bolt.MarkBlock, 5*bolt.MarkBlock)
			token, sequence, entry := mintOne(t, db)
			closeStore(t, db)
			prepare(t, dir)

			for range 2 { // and the same once more
				db = restoreStore(t, dir, file, bolt.Options{})
				mustHaveKey(t, db, "a", true)
				mustHaveKey(t, db, "after", false)
				mustBeSound(t, db)
				a, b, c := mintOne(t, db)
				if a <= token || b <= sequence || c <= entry || a >= 1<<53 {
					t.Errorf("numbers %d %d %d after %d %d %d", a, b, c, token, sequence, entry)
				}
				epoch := db.Epoch()
				if epoch == 0 {
					t.Error("no epoch has begun")
				}
				token, sequence, entry = a, b, c
				closeStore(t, db)
				db = open(t, dir, bolt.Options{})
				if db.Epoch() != epoch {
					t.Errorf("epoch after opening again: got %d, want %d", db.Epoch(), epoch)
				}
				closeStore(t, db)
			}
		})
	}
}

// P7: an empty folder knows nothing of what others have done with the same backup. A
// second restore of it, an hour later and elsewhere, gives other numbers than the
// first one, even if that was restored or rolled back in its turn. Count epochs up
// from the backup's alone and this fails.
func TestRestore_IntoEmptyFoldersRepeatsNothing(t *testing.T) {
	file, _ := withKey(t, "a")
	at := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	wall := func() time.Time { return at }

	first := t.TempDir()
	db := restoreStore(t, first, file, bolt.Options{Wall: wall})
	token, _, _ := mintOne(t, db)
	closeStore(t, db)
	// Its database is lost with its mark, but an older copy is found and accepted.
	copied := read(t, first, bolt.DataFile)
	at = at.Add(time.Hour)
	second := t.TempDir()
	write(t, second, bolt.DataFile, copied)
	db = open(t, second, bolt.Options{Wall: wall, AcceptRollback: true})
	again, _, _ := mintOne(t, db)
	closeStore(t, db)
	if again <= token {
		t.Errorf("an accepted copy gave token %d after %d", again, token)
	}
	at = at.Add(time.Hour)
	db = restoreStore(t, t.TempDir(), file, bolt.Options{Wall: wall})
	last, _, _ := mintOne(t, db)
	closeStore(t, db)
	if last <= again {
		t.Errorf("a second restore gave token %d after %d", last, again)
	}
	// A clock that is far off does not use up the epochs.
	for _, year := range []int{1970, 2024, 2500, 9999} {
		at = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		dir := t.TempDir()
		db = restoreStore(t, dir, file, bolt.Options{Wall: wall})
		epoch := db.Epoch()
		mintOne(t, db)
		closeStore(t, db)
		db = restoreStore(t, dir, file, bolt.Options{Wall: wall})
		if n, _, _ := mintOne(t, db); n >= 1<<53 || db.Epoch() != epoch+1 {
			t.Errorf("in %d: epoch %d after %d, token %d", year, db.Epoch(), epoch, n)
		}
		closeStore(t, db)
	}
}

// A restore that is refused or called off changes nothing.
func TestRestore_RefusesAndChangesNothing(t *testing.T) {
	file, _ := withKey(t, "a")
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut, flipped := sound[:len(sound)-4096], bytes.Clone(sound)
	for at := 2 * 4096; at < len(flipped); at += 4096 { // the kind of each page but the first two
		flipped[at+8] ^= 0x40
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, dir := withKey(t, "b")
	snapshot := func() string {
		var s strings.Builder
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != bolt.LockFile && e.Name() != bolt.ReserveFile {
				fmt.Fprintf(&s, "%s %x\n", e.Name(), read(t, dir, e.Name()))
			}
		}
		return s.String()
	}
	before := snapshot()
	for name, c := range map[string]struct {
		ctx     context.Context
		content []byte
		want    refusal.Category
	}{
		"empty":      {ctx, nil, refusal.StoreCorrupt},
		"no store":   {ctx, []byte(strings.Repeat("no database\n", 5000)), refusal.StoreCorrupt},
		"cut off":    {ctx, cut, refusal.StoreCorrupt},
		"damaged":    {ctx, flipped, refusal.StoreCorrupt},
		"called off": {canceled, sound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(from, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := bolt.Restore(c.ctx, dir, from, bolt.Restoring{}, bolt.Options{})
			if c.want != "" && !refusal.Has(err, c.want) || c.want == "" && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if snapshot() != before {
				t.Error("the store has changed")
			}
		})
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The store's own file, and what is no file: a FIFO that nobody writes, a device
	// without end, a folder.
	for _, from := range []string{filepath.Join(dir, bolt.DataFile), fifo, "/dev/zero", t.TempDir()} {
		if _, err := bolt.Restore(ctx, dir, from, bolt.Restoring{}, bolt.Options{}); !refusal.Has(err, refusal.BadRequest) {
			t.Errorf("%s: got %v", from, err)
		}
	}
	if snapshot() != before {
		t.Error("the store has changed")
	}
	db := open(t, dir, bolt.Options{})
	if _, err := bolt.Restore(ctx, dir, file, bolt.Restoring{}, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
		t.Errorf("a store in use: got %v", err)
	}
	if _, _, err := bolt.Compact(ctx, dir, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
		t.Errorf("compacting a store in use: got %v", err)
	}
	mustHaveKey(t, db, "b", true)
	closeStore(t, db)
}

// replace restores args[2] into the store in args[0], or compacts that, and kills
// itself when it has reached the step args[1].
func replace(args []string) {
	o := bolt.WithSteps(bolt.Options{}, func(step string) {
		if step == args[1] {
			suicide()
		}
	})
	if args[2] == "" {
		_, _, err := bolt.Compact(ctx, args[0], o)
		exitOn(err)
		return
	}
	db, err := bolt.Restore(ctx, args[0], args[2], bolt.Restoring{}, o)
	exitOn(err)
	exitOn(db.Close())
}

// P7: a crash in every gap of a restore leaves the store of before, or the new one
// with its new epoch, which opens without a refusal; nothing in between, and no
// number twice. Write the new mark before the database has its name, and "copy named"
// is refused; make the epoch only when opening, and it is lost there.
func TestRestore_CrashInEveryGap(t *testing.T) {
	for _, marked := range []bool{true, false} {
		for _, step := range []string{"copy made", "mark replaced", "store kept", "copy named", "database opened", "mark written", "closing state recorded"} {
			if marked && step == "mark replaced" {
				continue
			}
			t.Run(fmt.Sprintf("%s,marked=%v", step, marked), func(t *testing.T) {
				file, _ := withKey(t, "new")
				_, dir := withKey(t, "old")
				db := open(t, dir, bolt.Options{})
				bolt.SkipTo(db, 2*bolt.MarkBlock, 2*bolt.MarkBlock)
				before, _, _ := mintOne(t, db)
				closeStore(t, db)
				if !marked {
					if err := os.Remove(filepath.Join(dir, bolt.MarkFile)); err != nil {
						t.Fatal(err)
					}
				}
				if err := start(t, "replace", dir, step, file).wait(); err == nil {
					t.Fatalf("the child did not die at %q", step)
				}
				named := step != "copy made" && step != "mark replaced" && step != "store kept"
				db, err := bolt.Open(dir, bolt.Options{})
				if !named && !marked {
					// It was refused before, and still is.
					if !refusal.Has(err, refusal.StoreRolledBack) {
						t.Fatalf("got %v", err)
					}
					db = restoreStore(t, dir, file, bolt.Options{})
					named = true
				} else if err != nil {
					t.Fatal(err)
				}
				mustHaveKey(t, db, "new", named)
				mustHaveKey(t, db, "old", !named)
				if (db.Epoch() > 0) != named {
					t.Errorf("epoch %d", db.Epoch())
				}
				if n, _, _ := mintOne(t, db); n <= before {
					t.Errorf("token %d after %d", n, before)
				}
				mustBeSound(t, db)
				closeStore(t, db)
				mustBeGone(t, dir)
				kept := 0
				for _, name := range []string{bolt.KeptFile, bolt.KeptFile + ".new"} {
					if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
						kept++
					}
				}
				if kept > 1 || kept == 1 && !named {
					t.Errorf("%d copies are kept of a store that was replaced: %v", kept, named)
				}
			})
		}
	}
}

// mustBeGone fails the test if an unfinished copy is left in the folder.
func mustBeGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, bolt.DataFile+".new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished copy is left: %v", err)
	}
}

// P7, report 4.6 #64 (the file never got smaller): compaction gives the room of removed
// values back and changes nothing else: values, counters, and where every number goes on, without a new epoch. A
// crash in every gap leaves the file of before or the new one.
func TestCompact_KeepsEverything(t *testing.T) {
	for _, step := range []string{"", "copy made", "copy named", "closing state recorded"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			db := open(t, dir, bolt.Options{})
			for i := range 100 {
				update(t, db, func(tx store.Tx) { tx.Put(fmt.Appendf(nil, "k%02d", i), make([]byte, 50_000)) })
			}
			for i := range 97 {
				update(t, db, func(tx store.Tx) {
					tx.Delete(fmt.Appendf(nil, "k%02d", i))
					tx.Add([]byte("n"), 2)
				})
			}
			update(t, db, func(tx store.Tx) { tx.Delete([]byte("k97")) })
			token, sequence, entry := mintOne(t, db)
			now := db.Now()
			closeStore(t, db)
			before := len(read(t, dir, bolt.DataFile))

			if step == "" {
				from, to, err := bolt.Compact(ctx, dir, bolt.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if int(from) != before || int(to) > before/10 || to > int64(len(read(t, dir, bolt.DataFile))) {
					t.Errorf("%d bytes before, %d after; it says %d and %d", before, len(read(t, dir, bolt.DataFile)), from, to)
				}
			} else if err := start(t, "replace", dir, step, "").wait(); err == nil {
				t.Fatalf("the child did not die at %q", step)
			}
			db = open(t, dir, bolt.Options{})
			mustBeGone(t, dir)
			view(t, db, func(r store.Reader) {
				n := 0
				r.Scan([]byte("k"), nil, func(_, v []byte) bool { n++; return len(v) == 50_000 })
				if n != 2 || r.Sum([]byte("n")) != 194 {
					t.Errorf("%d values and a counter of %d", n, r.Sum([]byte("n")))
				}
			})
			a, b, c := mintOne(t, db)
			if a <= token || b <= sequence || c != entry+1 || db.Epoch() != 0 || db.Now() < now {
				t.Errorf("numbers %d %d %d after %d %d %d, epoch %d", a, b, c, token, sequence, entry, db.Epoch())
			}
			mustBeSound(t, db)
			closeStore(t, db)
		})
	}
}

// narrow compacts the store in args[0], with no descriptor left when the copy is to get
// its name, and fails where that succeeds. Should the store be closed in order all the
// same, there are descriptors again for its mark.
func narrow(args []string) {
	var before syscall.Rlimit
	exitOn(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	limit := func(n uint64) {
		exitOn(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: before.Max}))
	}
	o := bolt.WithSteps(bolt.Options{}, func(step string) {
		switch step {
		case "copy made":
			next, err := os.Open(os.DevNull)
			exitOn(err)
			fd := next.Fd()
			exitOn(next.Close())
			limit(uint64(fd))
		case "closing state recorded":
			limit(before.Cur)
		}
	})
	if _, _, err := bolt.Compact(ctx, args[0], o); !errors.Is(err, syscall.EMFILE) {
		exitOn(fmt.Errorf("compact without a descriptor: %v", err))
	}
}

// P7: a compaction that fails once the copy has its name leaves the copy, and a mark that
// fits it. Have compact not give the open store up, and the next opening refuses the copy
// as rolled back: the end was recorded in the file that has no name any more.
func TestCompact_FailsWithTheCopyInPlace(t *testing.T) {
	_, dir := withKey(t, "k")
	if err := start(t, "narrow", dir).wait(); err != nil {
		t.Fatal(err)
	}
	db := open(t, dir, bolt.Options{})
	mustHaveKey(t, db, "k", true)
	mustBeSound(t, db)
	closeStore(t, db)
}

// P7: the mailbox.db of a store in use, copied without its log, is an earlier state of
// the store, and no backup: it is refused, and changes nothing. It can be had with its
// log, or without it by who says so. Leave the label out of replace and this fails.
func TestRestore_RefusesADatabaseWithoutItsLog(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 30)
	file := backup(t, db) // moves the log, and names the next
	putNumbers(t, db, 30, 40)
	left := crash(t, dir)
	closeStore(t, db)

	_, other := withKey(t, "b")
	raw := filepath.Join(left, bolt.DataFile)
	_, err := bolt.Restore(ctx, other, raw, bolt.Restoring{}, bolt.Options{})
	if r := refusal.Of(err); !refusal.Has(err, refusal.BadRequest) || !strings.Contains(r.Why, "log") || !strings.Contains(r.Next, "mailbox.wal.1") {
		t.Errorf("without its log: got %v", err)
	}
	mustBeGone(t, other)
	db = open(t, other, bolt.Options{})
	mustHaveKey(t, db, "b", true)
	closeStore(t, db)

	// A backup with a label, and a change behind it.
	worked := t.TempDir()
	db = restoreStore(t, worked, file, bolt.Options{})
	mustHaveNumbers(t, db, 30)
	putNumbers(t, db, 30, 31)
	copied := crash(t, worked)
	closeStore(t, db)
	if _, err := bolt.Restore(ctx, other, filepath.Join(copied, bolt.DataFile), bolt.Restoring{}, bolt.Options{}); !refusal.Has(err, refusal.BadRequest) {
		t.Errorf("made of a backup and used: got %v", err)
	}

	// What the refusal says is to be done: a backup of file and log,
	alone := t.TempDir()
	for _, name := range append(bolt.LogFiles[:], bolt.DataFile) {
		write(t, alone, name, read(t, left, name))
	}
	reader := open(t, alone, bolt.Options{ReadOnly: true})
	whole := backup(t, reader)
	closeStore(t, reader)
	db = restoreStore(t, t.TempDir(), whole, bolt.Options{})
	mustHaveNumbers(t, db, 40)
	closeStore(t, db)
	// or the file alone, by who accepts that.
	alone = t.TempDir()
	write(t, alone, bolt.DataFile, read(t, left, bolt.DataFile))
	db = open(t, alone, bolt.Options{AcceptRollback: true})
	mustHaveNumbers(t, db, 30)
	closeStore(t, db)
}

// A backup of what a crash has left takes room where the backup goes and nowhere else,
// and nothing of that stays: not after it, not when it is called off, not after a
// SIGKILL at its first byte. Make the copy in the folder for temporary files, or leave
// it its name, and this fails.
func TestBackup_OfACrashedStoreLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 30)
	left := crash(t, dir)
	closeStore(t, db)

	t.Setenv("TMPDIR", filepath.Join(dir, "nowhere"))
	scratch := t.TempDir()
	reader := open(t, left, bolt.Options{ReadOnly: true})
	defer closeStore(t, reader)
	mustBeEmpty := func(when string) {
		t.Helper()
		if entries, err := os.ReadDir(scratch); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v is left, %v", when, entries, err)
		}
	}
	var b bytes.Buffer
	if err := reader.Backup(ctx, &b, scratch, func(int64) { mustBeEmpty("while it is written") }); err != nil {
		t.Fatal(err)
	}
	mustBeEmpty("done")
	canceled, cancel := context.WithCancel(ctx)
	if err := reader.Backup(canceled, &bytes.Buffer{}, scratch, func(int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: got %v", err)
	}
	mustBeEmpty("called off")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	restored := restoreStore(t, t.TempDir(), file, bolt.Options{})
	mustHaveNumbers(t, restored, 30)
	closeStore(t, restored)
}

// P7: what a restore replaces is kept, with what only its log had, and shown before.
// It is a backup like any other: the way back begins an epoch of its own, so that no
// number of either past comes again, and keeps in turn what it replaces. Rename the copy
// over the old file without a second name, or leave its log where it is, and this fails.
func TestRestore_KeepsWhatItReplaces(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 10)
	file := backup(t, db)
	putNumbers(t, db, 10, 40)
	greatest, _, _ := mintOne(t, db)
	left := crash(t, dir)
	closeStore(t, db)
	kept := filepath.Join(left, bolt.KeptFile)

	for i, c := range []struct {
		from            string
		replaced, holds int
	}{{file, 40, 10}, {kept, 10, 40}, {kept, 40, 10}} {
		shown := 0
		db, err := bolt.Restore(ctx, left, c.from, bolt.Restoring{Replaced: func(old *bolt.DB, _ uint64, other bool, err error) {
			if shown++; err != nil {
				t.Errorf("restore %d: the store that is replaced: %v", i, err)
				return
			}
			mustHaveNumbers(t, old, c.replaced)
			if other {
				t.Errorf("restore %d: the backup is taken for that of another store", i)
			}
		}}, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if shown != 1 {
			t.Errorf("restore %d showed %d stores", i, shown)
		}
		mustHaveNumbers(t, db, c.holds)
		mustBeSound(t, db)
		token, _, _ := mintOne(t, db)
		if token <= greatest {
			t.Errorf("restore %d: token %d after %d", i, token, greatest)
		}
		greatest = token
		closeStore(t, db)
	}
	// A store that cannot be read is kept as it is.
	write(t, left, bolt.DataFile, []byte("damaged"))
	var why error
	db, err := bolt.Restore(ctx, left, file, bolt.Restoring{Replaced: func(_ *bolt.DB, _ uint64, _ bool, err error) { why = err }}, bolt.Options{})
	if err != nil || why == nil || string(read(t, left, bolt.KeptFile)) != "damaged" {
		t.Errorf("a damaged store: %v, shown as %v", err, why)
	}
	closeStore(t, db)
}
