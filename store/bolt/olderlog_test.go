package bolt_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// olderStores are what a crash has left of stores of schema 2, whose logs say nothing of
// the length of their files: after so many of putNumbers, with LogSize 4 KiB. In the
// second, commits went on in the second file before the first was moved.
var olderStores = map[string]int{"older-log.tar.gz": 5, "older-logs.tar.gz": 25}

// unpack returns a folder with what is in the archive of testdata with that name.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, filepath.Base(h.Name), b)
	}
}

// P2.4: what a build with an older log has confirmed is there after a crash and an
// upgrade: for who reads, for who writes, and after another crash, now of this build.
// Read every log as one of this build and this fails.
func TestOpen_ReplaysTheLogOfAnOlderBuild(t *testing.T) {
	for name, n := range olderStores {
		t.Run(name, func(t *testing.T) {
			dir := unpack(t, name)
			for _, o := range []bolt.Options{{ReadOnly: true}, {LogSize: 4 << 10}} {
				db := open(t, dir, o)
				mustHaveNumbers(t, db, n)
				mustBeSound(t, db)
				if o.ReadOnly {
					closeStore(t, db)
					continue
				}
				for _, file := range bolt.LogFiles { // the same bytes, used anew
					if got := len(read(t, dir, file)); got != 6<<10 {
						t.Errorf("%s has %d bytes", file, got)
					}
				}
				putNumbers(t, db, n, n+10)
				left := crash(t, dir)
				closeStore(t, db)
				db = open(t, left, bolt.Options{})
				mustHaveNumbers(t, db, n+10)
				mustBeSound(t, db)
				closeStore(t, db)
			}
		})
	}
}

// Damage in such a log is found as in one of this build: a record that cannot be read
// is its end only where no whole one lies behind it.
func TestOpen_RefusesADamagedLogOfAnOlderBuild(t *testing.T) {
	for name, n := range olderStores {
		dir := unpack(t, name)
		whole := read(t, dir, bolt.LogFiles[0])
		all := records(t, whole)
		for i, r := range all {
			b := append([]byte(nil), whole...)
			b[r[0]+r[1]-1] ^= 1
			write(t, dir, bolt.LogFiles[0], b)
			db, err := bolt.Open(dir, bolt.Options{ReadOnly: true})
			switch {
			case i == 0:
				if !refusal.Has(err, refusal.StoreRolledBack) {
					t.Errorf("%s: no head: got %v", name, err)
				}
			case i == len(all)-1 && n == 5:
				if err != nil {
					t.Fatalf("%s: torn at the end: %v", name, err)
				}
				mustHaveNumbers(t, db, n-1)
				closeStore(t, db)
			default:
				if !refusal.Has(err, refusal.StoreCorrupt) {
					t.Errorf("%s: record %d of %d: got %v", name, i, len(all), err)
				}
			}
		}
	}
}

// P7: a backup that a build without labels has made of a running store is taken, with all
// that the log held then. The mailbox.db of that store is none, nor is a backup of
// today without its label. Take whatever has an old schema and
// this fails; so it does if only labels are believed.
func TestRestore_TakesABackupOfAnOlderBuild(t *testing.T) {
	older := unpack(t, "older-backup.tar.gz")
	db := restoreStore(t, t.TempDir(), filepath.Join(older, "backup.db"), bolt.Options{})
	mustHaveNumbers(t, db, 30)
	mustBeSound(t, db)
	closeStore(t, db)

	dir := t.TempDir()
	db = open(t, dir, bolt.Options{})
	today, err := os.ReadFile(backup(t, db))
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, db)
	clear(today[80:96])
	write(t, older, "today.db", today)
	for _, name := range []string{"live.db", "today.db"} {
		if _, err := bolt.Restore(ctx, t.TempDir(), filepath.Join(older, name), bolt.Restoring{}, bolt.Options{}); !refusal.Has(err, refusal.BadRequest) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
