package bolt_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A log that is shorter than it was known to be is damage, and never a shorter store:
// wherever it was cut off, and whichever of its files. The only cut that cannot be told
// from a crash is one right behind where the file had grown, before a commit said so.
// Leave the size out of replay and this fails.
func TestOpen_TellsACutLogFromACrash(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	n := 0
	commit := func() {
		update(t, db, func(tx store.Tx) { tx.Add([]byte("n"), 1); tx.Put([]byte("k"), make([]byte, 3<<10)) })
		n++
	}
	short := len(read(t, dir, bolt.LogFiles[0]))
	for len(read(t, dir, bolt.LogFiles[0])) == short {
		commit()
	}
	for range 5 {
		commit()
	}
	left := crash(t, dir)
	closeStore(t, db)
	whole := read(t, left, bolt.LogFiles[0])
	all := records(t, whole)
	// The first record that says that the file has grown.
	told := 0
	for _, r := range all {
		if int(binary.BigEndian.Uint64(whole[r[0]+24:])) > short {
			told = r[0] + r[1]
			break
		}
	}
	if len(all) != n+1 || told == 0 {
		t.Fatalf("%d records of %d commits, grown at %d", len(all), n, told)
	}
	for cut := 0; cut < len(whole); cut += 509 {
		write(t, left, bolt.LogFiles[0], bytes.Clone(whole[:cut]))
		want := refusal.StoreCorrupt
		switch {
		case cut < all[0][1]:
			want = refusal.StoreRolledBack
		case short <= cut && cut < told:
			continue
		}
		_, err := bolt.Open(left, bolt.Options{ReadOnly: true})
		if !refusal.Has(err, want) {
			t.Fatalf("cut at %d of %d: got %v, want %s", cut, len(whole), err, want)
		}
	}
	if _, err := bolt.Open(left, bolt.Options{}); !refusal.Has(err, refusal.StoreCorrupt) || refusal.Of(err).Next == "" {
		t.Errorf("who writes: got %v", err)
	}
	db = open(t, left, bolt.Options{AcceptRollback: true})
	mustBeSound(t, db)
	closeStore(t, db)
}

// The same of the second file, while the first is moved into the database.
func TestOpen_TellsACutSecondLogFromACrash(t *testing.T) {
	dir := t.TempDir()
	hold, held := make(chan struct{}), false
	db := open(t, dir, bolt.WithMoves(bolt.Options{LogSize: 8 << 10}, func(commit func() error) error {
		if held {
			<-hold
		}
		return commit()
	}))
	held = true
	second := read(t, dir, bolt.LogFiles[1])
	n := 0
	for ; n < 200 && bytes.Equal(second, read(t, dir, bolt.LogFiles[1])); n++ {
		update(t, db, func(tx store.Tx) { tx.Put(fmt.Appendf(nil, "k%03d", n), make([]byte, 100)) })
	}
	for range 3 {
		update(t, db, func(tx store.Tx) { tx.Put([]byte("k"), []byte("v")) })
	}
	left := crash(t, dir)
	close(hold)
	closeStore(t, db)
	whole := read(t, left, bolt.LogFiles[1])
	head := records(t, whole)[0][1]
	for cut := head; cut < len(whole); cut += 97 {
		write(t, left, bolt.LogFiles[1], bytes.Clone(whole[:cut]))
		if _, err := bolt.Open(left, bolt.Options{ReadOnly: true}); !refusal.Has(err, refusal.StoreCorrupt) {
			t.Fatalf("cut at %d of %d: got %v", cut, len(whole), err)
		}
	}
	write(t, left, bolt.LogFiles[1], whole)
	db = open(t, left, bolt.Options{})
	mustBeSound(t, db)
	closeStore(t, db)
}
