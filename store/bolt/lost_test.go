package bolt_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// turned returns what a crash leaves of a store with n updates after whose last turn of
// the log the first file is not in mailbox.db yet, and commits are in the second.
func turned(t *testing.T) (dir string, n int) {
	t.Helper()
	from := t.TempDir()
	hold, held := make(chan struct{}), false
	db := open(t, from, bolt.WithMoves(bolt.Options{LogSize: 8 << 10}, func(commit func() error) error {
		if held {
			<-hold
		}
		return commit()
	}))
	held = true
	second := read(t, from, bolt.LogFiles[1])
	for bytes.Equal(second, read(t, from, bolt.LogFiles[1])) {
		putNumbers(t, db, n, n+1)
		n++
	}
	putNumbers(t, db, n, n+3)
	dir = crash(t, from)
	close(hold)
	closeStore(t, db)
	return dir, n + 3
}

// A file of the log that is missing, empty, shorter than its head, overwritten with
// zeros, or has a copy of the other in its place may have held what was confirmed: it is refused by who writes, who
// reads and the check, also where commits have never gone on in it; and who accepts it
// goes on with what the other holds. Take what is missing for what was never used and
// this fails.
func TestOpen_RefusesALostSecondLog(t *testing.T) {
	whole, n := turned(t)
	fresh := t.TempDir()
	db := open(t, fresh, bolt.Options{})
	putNumbers(t, db, 0, 12)
	unturned := crash(t, fresh)
	closeStore(t, db)
	first, second := bolt.LogFiles[0], bolt.LogFiles[1]
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		want refusal.Category
	}{
		"missing": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, second)); err != nil {
				t.Fatal(err)
			}
		}, refusal.StoreRolledBack},
		"empty": {func(t *testing.T, dir string) { write(t, dir, second, nil) }, refusal.StoreRolledBack},
		"cut":   {func(t *testing.T, dir string) { write(t, dir, second, read(t, dir, second)[:40]) }, refusal.StoreRolledBack},
		"zeros": {func(t *testing.T, dir string) { write(t, dir, second, make([]byte, len(read(t, dir, second)))) }, refusal.StoreCorrupt},
		"its first page is zeros": {func(t *testing.T, dir string) {
			write(t, dir, second, append(make([]byte, 4096), read(t, dir, second)[4096:]...))
		}, refusal.StoreCorrupt},
		"copy": {func(t *testing.T, dir string) { write(t, dir, second, read(t, dir, first)) }, refusal.StoreCorrupt},
	} {
		for from, count := range map[string]int{whole: n, unturned: 12} {
			t.Run(fmt.Sprintf("%s,turned=%v", name, from == whole), func(t *testing.T) {
				left := crash(t, from)
				c.harm(t, left)
				before := map[string][]byte{bolt.DataFile: nil, first: nil, bolt.MarkFile: nil}
				for name := range before {
					before[name] = read(t, left, name)
				}
				for _, o := range []bolt.Options{{ReadOnly: true}, {}} {
					if _, err := bolt.Open(left, o); !refusal.Has(err, c.want) || refusal.Of(err).Next == "" {
						t.Fatalf("read only %v: got %v", o.ReadOnly, err)
					}
				}
				for name, b := range before {
					if !bytes.Equal(b, read(t, left, name)) {
						t.Errorf("who was refused has changed %s", name)
					}
				}
				problems := 0
				if err := bolt.CheckFile(ctx, left, func(error) bool { problems++; return true }); err != nil || problems != 1 {
					t.Errorf("the check finds %d problems, %v", problems, err)
				}
				db := open(t, left, bolt.Options{AcceptRollback: true})
				if db.Epoch() == 0 {
					t.Error("no new epoch")
				}
				if from == unturned {
					mustHaveNumbers(t, db, count)
				}
				mustBeSound(t, db)
				closeStore(t, db)
			})
		}
	}
	db = open(t, whole, bolt.Options{})
	mustHaveNumbers(t, db, n)
	closeStore(t, db)
}
