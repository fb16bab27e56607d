package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// What the leader remembers of mailbox.db is forgotten when a checkpoint has changed it:
// a lease that it looks at again and again is the present one. And what came and went
// within the log is not there afterwards, nor what was there and went. Keep values in
// recent.get whatever the transaction, or pass over every deletion in DB.write, and this
// fails.
func TestUpdate_ReadsWhatCheckpointsHaveMoved(t *testing.T) {
	ctx := context.Background()
	db, err := bolt.Open(t.TempDir(), bolt.Options{LogSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lease, gone := []byte("lease"), func(n int) []byte { return []byte{'m', byte(n)} }
	want := ""
	moves := db.Stats().Checkpoints
	for n := range 400 {
		err := db.Update(ctx, func(tx store.Tx) error {
			if got := string(tx.Get(lease)); got != want {
				return fmt.Errorf("round %d: read %q, want %q", n, got, want)
			}
			for _, k := range [][]byte{gone(n - 1), gone(n - 40)} {
				if tx.Get(k) != nil {
					return fmt.Errorf("round %d: %q is there", n, k)
				}
			}
			tx.Put([]byte("z"), make([]byte, 300))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n%23 == 0 {
			want = fmt.Sprint(n)
			err = db.Update(ctx, func(tx store.Tx) error { tx.Put(lease, []byte(want)); return nil })
		} else if n%5 == 0 { // comes and goes within the log, or is moved in between
			key := gone(n)
			err = db.Update(ctx, func(tx store.Tx) error { tx.Put(key, []byte("x")); return nil })
			for range n % 31 {
				err = errors.Join(err, db.Update(ctx, func(tx store.Tx) error { tx.Put([]byte("z"), make([]byte, 300)); return nil }))
			}
			err = errors.Join(err, db.Update(ctx, func(tx store.Tx) error { tx.Delete(key); return nil }))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if db.Stats().Checkpoints-moves < 10 {
		t.Errorf("only %d checkpoints", db.Stats().Checkpoints-moves)
	}
}
