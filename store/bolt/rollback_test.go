package bolt_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mintOne gives one token, sequence number and entry, and returns the token.
func mintOne(t *testing.T, db *bolt.DB) (token, sequence, entry uint64) {
	t.Helper()
	update(t, db, func(tx store.Tx) { token, sequence, entry = tx.Mint("r"), tx.Next(), tx.Append('l', nil) })
	return token, sequence, entry
}

// P7: every way to lose the newest database is refused, store_rolled_back, with
// the way out; the files stay as they are; and the way out starts an epoch whose
// numbers are greater than all before. Forget any comparison in checkAge or
// planCreation and its case fails.
func TestOpen_RefusesRollback(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, dir string, old []byte){
		"older copy": func(t *testing.T, dir string, old []byte) { write(t, dir, bolt.DataFile, old) },
		"database lost": func(t *testing.T, dir string, _ []byte) {
			if err := os.Remove(filepath.Join(dir, bolt.DataFile)); err != nil {
				t.Fatal(err)
			}
		},
		"mark lost": func(t *testing.T, dir string, _ []byte) {
			if err := os.Remove(filepath.Join(dir, bolt.MarkFile)); err != nil {
				t.Fatal(err)
			}
		},
		"mark damaged": func(t *testing.T, dir string, _ []byte) {
			b := read(t, dir, bolt.MarkFile)
			b[30] ^= 1
			write(t, dir, bolt.MarkFile, b)
		},
		"mark emptied": func(t *testing.T, dir string, _ []byte) { write(t, dir, bolt.MarkFile, nil) },
		"another store's database": func(t *testing.T, dir string, _ []byte) {
			other := t.TempDir()
			db := open(t, other, bolt.Options{})
			mintOne(t, db)
			closeStore(t, db)
			for range 5 {
				closeStore(t, open(t, other, bolt.Options{}))
			}
			write(t, dir, bolt.DataFile, read(t, other, bolt.DataFile))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := open(t, dir, bolt.Options{})
			mintOne(t, db)
			closeStore(t, db)
			old := read(t, dir, bolt.DataFile)
			db = open(t, dir, bolt.Options{})
			var token, sequence, entry uint64
			for range 10 {
				token, sequence, entry = mintOne(t, db)
			}
			if db.Epoch() != 0 {
				t.Errorf("epoch of a store without a past: got %d", db.Epoch())
			}
			closeStore(t, db)
			harm(t, dir, old)

			for range 2 { // a refusal changes nothing, so it repeats
				_, err := bolt.Open(dir, bolt.Options{})
				r := refusal.Of(err)
				if r == nil || r.Category != refusal.StoreRolledBack || !strings.Contains(r.Next, "--accept-rollback") {
					t.Fatalf("got %v", err)
				}
				if name != "database lost" {
					continue
				}
				// Who only reads is told the same: have it look for the file alone, and
				// it says that no such file is there.
				if _, err := bolt.Open(dir, bolt.Options{ReadOnly: true}); !refusal.Has(err, refusal.StoreRolledBack) {
					t.Fatalf("for reading: got %v", err)
				}
			}
			db = open(t, dir, bolt.Options{AcceptRollback: true})
			if db.Epoch() == 0 {
				t.Error("accepting a rollback has not started an epoch")
			}
			a, b, c := mintOne(t, db)
			if a <= token || b <= sequence || c <= entry || a >= 1<<53 {
				t.Errorf("numbers %d %d %d after %d %d %d", a, b, c, token, sequence, entry)
			}
			epoch := db.Epoch()
			closeStore(t, db)
			db = open(t, dir, bolt.Options{})
			if db.Epoch() != epoch {
				t.Errorf("epoch after opening again: got %d, want %d", db.Epoch(), epoch)
			}
			mustBeSound(t, db)
			closeStore(t, db)
		})
	}
}

// files are the database and its log as they are on disk now.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range append([]string{bolt.DataFile}, bolt.LogFiles[:]...) {
		all[name] = read(t, dir, name)
	}
	return all
}

// P7: an older copy of the same run, database and log, put back after a crash, cannot
// be told from what the crash left; numbers do not repeat all the same. After a clean
// close it can be told.
func TestOpen_NumbersSurviveACopyOfTheSameRun(t *testing.T) {
	for _, clean := range []bool{false, true} {
		dir := t.TempDir()
		c := start(t, "traffic", dir, "0")
		for range 50 {
			c.line()
		}
		c.kill()
		db := open(t, dir, bolt.Options{})
		mintOne(t, db)
		copied := files(t, dir) // no commit runs: a consistent copy
		var highest uint64
		for range 20 {
			highest, _, _ = mintOne(t, db)
		}
		if clean {
			closeStore(t, db)
			for name, b := range copied {
				write(t, dir, name, b)
			}
			if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.StoreRolledBack) {
				t.Errorf("after a clean close: got %v", err)
			}
			continue
		}
		// The crash: another folder gets what is on disk now.
		crashed := t.TempDir()
		for name, b := range copied {
			write(t, crashed, name, b)
		}
		write(t, crashed, bolt.MarkFile, read(t, dir, bolt.MarkFile))
		closeStore(t, db)
		db = open(t, crashed, bolt.Options{})
		if n, _, _ := mintOne(t, db); n <= highest {
			t.Errorf("token %d after %d", n, highest)
		}
		closeStore(t, db)
	}
}

// The mark moves before numbers pass it, also where a function skips far.
func TestUpdate_NumbersPassManyBlocks(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	var last uint64
	for i := range 5 {
		token, sequence, _ := mintOne(t, db)
		if token <= last {
			t.Errorf("round %d: token %d after %d", i, token, last)
		}
		last = token + 3*bolt.MarkBlock/2
		bolt.SkipTo(db, last, sequence+10)
		mark := read(t, dir, bolt.MarkFile)
		if m := binary.BigEndian.Uint64(mark[40:]); m < token {
			t.Errorf("round %d: the mark on disk is %d, below the token %d", i, m, token)
		}
	}
	closeStore(t, db)
	mark := read(t, dir, bolt.MarkFile)
	if m := binary.BigEndian.Uint64(mark[40:]); m != last {
		t.Errorf("after a clean close the mark is %d, want exactly %d", m, last)
	}
}

// A store of a newer schema is refused and not called damaged.
func TestOpen_RefusesNewerSchema(t *testing.T) {
	dir := t.TempDir()
	closeStore(t, open(t, dir, bolt.Options{}))
	d, err := bbolt.Open(filepath.Join(dir, bolt.DataFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Update(func(tx *bbolt.Tx) error {
		b := bytes.Clone(tx.Bucket([]byte("meta")).Get([]byte("state")))
		binary.BigEndian.PutUint32(b, bolt.Schema+1)
		b = append(b[:len(b)-4], "a field of the future"...)
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		return tx.Bucket([]byte("meta")).Put([]byte("state"), b)
	}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	for _, o := range []bolt.Options{{}, {ReadOnly: true}, {AcceptRollback: true}} {
		_, err := bolt.Open(dir, o)
		if r := refusal.Of(err); r == nil || r.Category != refusal.WrongState || !strings.Contains(r.Why, "newer") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}
