package bolt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// stoppedStores are the folders of a store with a few numbers: one that has crashed, and
// one that was closed in order.
func stoppedStores(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	db := open(t, dir, bolt.Options{})
	putNumbers(t, db, 0, 12)
	crashed := crash(t, dir)
	closeStore(t, db)
	return map[string]string{"crashed": crashed, "closed": dir}
}

// What has the name of a log file and cannot be read is refused, store_corrupt, with
// what is to be done, by who reads as by who writes, and by the check; and what the
// refusal says does it: after a crash the store goes on without what that file held,
// which is kept; after an orderly stop, without losing anything. Take setAside out of
// openForWriting and this fails.
func TestOpen_TellsALogThatCannotBeRead(t *testing.T) {
	stops := stoppedStores(t)
	for name, put := range map[string]func(name string) error{
		"folder":     func(name string) error { return os.Mkdir(name, 0o700) },
		"FIFO":       func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"very large": func(name string) error { return os.WriteFile(name, nil, 0o600) },
	} {
		for _, log := range bolt.LogFiles {
			for stop, from := range stops {
				t.Run(fmt.Sprintf("%s,%s,%s", log, name, stop), func(t *testing.T) {
					left := crash(t, from)
					path := filepath.Join(left, log)
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					if err := put(path); err != nil {
						t.Fatal(err)
					}
					if name == "very large" {
						if err := os.Truncate(path, 3<<30); err != nil {
							t.Fatal(err)
						}
					}
					_, err := bolt.Open(left, bolt.Options{})
					r := refusal.Of(err)
					if !refusal.Has(err, refusal.StoreCorrupt) || !strings.Contains(r.Why, log) || r.Next == "" {
						t.Fatalf("who writes: got %v", err)
					}
					if stop == "closed" {
						db := open(t, left, bolt.Options{ReadOnly: true})
						mustHaveNumbers(t, db, 12)
						problems := 0
						if err := db.Check(ctx, func(p error) bool {
							problems++
							return refusal.Has(p, refusal.StoreCorrupt)
						}); err != nil || problems != 1 {
							t.Errorf("the check finds %d problems, %v", problems, err)
						}
						closeStore(t, db)
						if err := os.Rename(path, path+".moved"); err != nil { // as it was told
							t.Fatal(err)
						}
						db = open(t, left, bolt.Options{})
						mustHaveNumbers(t, db, 12)
						closeStore(t, db)
						return
					}
					if _, err := bolt.Open(left, bolt.Options{ReadOnly: true}); !refusal.Has(err, refusal.StoreCorrupt) {
						t.Errorf("who reads: got %v", err)
					}
					problems := 0
					if err := bolt.CheckFile(ctx, left, func(error) bool { problems++; return true }); err != nil || problems == 0 {
						t.Errorf("the check finds %d problems, %v", problems, err)
					}
					had := 0
					for i := range 2 { // and again, where a name is taken
						db := open(t, left, bolt.Options{AcceptRollback: true})
						if db.Epoch() == 0 {
							t.Error("no new epoch")
						}
						view(t, db, func(r store.Reader) { had = int(r.Sum([]byte("n"))) })
						if want := 12 * slices.Index(bolt.LogFiles[:], log); had != want {
							t.Errorf("%d updates are there, want %d", had, want)
						}
						mustBeSound(t, db)
						closeStore(t, db)
						kept := path + ".unreadable"
						if i > 0 {
							kept += ".2"
						}
						if _, err := os.Lstat(kept); err != nil {
							t.Errorf("what was there is gone: %v", err)
						}
						if err := os.Remove(path); err != nil {
							t.Fatal(err)
						}
						if err := put(path); err != nil {
							t.Fatal(err)
						}
						if name == "very large" {
							if err := os.Truncate(path, 3<<30); err != nil {
								t.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}

// A mark that is missing, damaged or no file is told by who reads, by the check and by
// who writes in the same words; and who accepts that gets past it. Return what the
// system says of a folder as it is, and this fails.
func TestOpen_TellsABadMarkAlike(t *testing.T) {
	_, dir := withKey(t, "a")
	whole := crash(t, dir)
	for name, put := range map[string]func(name string) error{
		"missing": func(string) error { return nil },
		"damaged": func(name string) error { return os.WriteFile(name, []byte("x"), 0o600) },
		"folder":  func(name string) error { return os.Mkdir(name, 0o700) },
		"FIFO":    func(name string) error { return syscall.Mkfifo(name, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			left := crash(t, whole)
			mark := filepath.Join(left, bolt.MarkFile)
			if err := os.Remove(mark); err != nil {
				t.Fatal(err)
			}
			if err := put(mark); err != nil {
				t.Fatal(err)
			}
			reader := open(t, left, bolt.Options{ReadOnly: true})
			said := reader.Refused()
			mustHaveKey(t, reader, "a", true)
			closeStore(t, reader)
			_, err := bolt.Open(left, bolt.Options{})
			if !refusal.Has(err, refusal.StoreRolledBack) || said == nil || err.Error() != said.Error() || refusal.Of(err).Next == "" {
				t.Errorf("who writes is told %v, who reads %v", err, said)
			}
			db := open(t, left, bolt.Options{AcceptRollback: true})
			mustHaveKey(t, db, "a", true)
			closeStore(t, db)
			reader = open(t, left, bolt.Options{ReadOnly: true})
			if err := reader.Refused(); err != nil {
				t.Errorf("accepted, and it is refused still: %v", err)
			}
			closeStore(t, reader)
		})
	}
}
