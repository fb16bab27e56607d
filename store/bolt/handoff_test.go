package bolt_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// A store that is handed over is locked at every moment, and the one who gets the lock
// finds all that was committed. Open it with a lock of its own, and this fails.
func TestHandOver_KeepsTheLock(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx store.Tx) error { tx.Put([]byte("ka"), []byte("v")); return nil }); err != nil {
		t.Fatal(err)
	}
	before := db.Now()
	for range 3 {
		lock, err := db.HandOver()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
			t.Fatalf("another opened it meanwhile: %v", err)
		}
		if db, err = bolt.Open(dir, bolt.Options{Lock: lock}); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.StoreLocked) {
			t.Fatalf("another opened it afterwards: %v", err)
		}
	}
	if now := db.Now(); now < before {
		t.Errorf("the clock went back from %d to %d", before, now)
	}
	err = db.View(t.Context(), func(r store.Reader) error {
		if got := string(r.Get([]byte("ka"))); got != "v" {
			t.Errorf("read %q", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if db, err = bolt.Open(dir, bolt.Options{}); err != nil {
		t.Fatalf("after the last has closed it: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheckSchema(t *testing.T) {
	if err := bolt.CheckSchema(bolt.Schema); err != nil {
		t.Error(err)
	}
	if err := bolt.CheckSchema(bolt.Schema + 1); !refusal.Has(err, refusal.WrongState) {
		t.Errorf("a newer one: %v", err)
	}
}
