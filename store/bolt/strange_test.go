package bolt_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// What has the name of a file of the store and is a link, to a file or to nothing, or a
// FIFO is refused, whoever opens, and what it names is neither changed nor created: the
// folder's owner could else have root overwrite any file, or keep a command for ever.
// Who accepts a rollback follows none either. Take O_NOFOLLOW or O_NONBLOCK out of
// openFile and this fails.
func TestOpen_FollowsNoLinkAndWaitsForNoFIFO(t *testing.T) {
	stops := stoppedStores(t)
	names := append([]string{bolt.DataFile, bolt.LockFile, bolt.MarkFile, bolt.ReserveFile}, bolt.LogFiles[:]...)
	for _, name := range names {
		for kind, put := range map[string]func(path, target string) error{
			"link": func(path, target string) error { return os.Symlink(target, path) },
			"link to nothing": func(path, target string) error {
				if err := os.Remove(target); err != nil {
					return err
				}
				return os.Symlink(target, path)
			},
			"FIFO": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		} {
			for stop, from := range stops {
				t.Run(fmt.Sprintf("%s,%s,%s", name, kind, stop), func(t *testing.T) {
					left, target := crash(t, from), filepath.Join(t.TempDir(), "target")
					path := filepath.Join(left, name)
					if err := os.Rename(path, target); os.IsNotExist(err) {
						err = os.WriteFile(target, []byte("precious"), 0o600)
						if err != nil {
							t.Fatal(err)
						}
					} else if err != nil {
						t.Fatal(err)
					}
					before, err := os.ReadFile(target)
					if err != nil {
						t.Fatal(err)
					}
					if err := put(path, target); err != nil {
						t.Fatal(err)
					}
					_, err = inTime(t, left, bolt.Options{})
					want := refusal.StoreCorrupt
					if name == bolt.MarkFile {
						want = refusal.StoreRolledBack
					}
					if !refusal.Has(err, want) || refusal.Of(err).Next == "" {
						t.Errorf("who writes: got %v", err)
					}
					if db, err := inTime(t, left, bolt.Options{ReadOnly: true}); err == nil {
						if name == bolt.DataFile || name == bolt.LockFile {
							t.Error("who reads is not refused")
						}
						closeStore(t, db)
					}
					_ = bolt.CheckFile(ctx, left, func(error) bool { return true })
					if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
						t.Errorf("what was refused has been replaced: %v", err)
					}
					if db, err := inTime(t, left, bolt.Options{AcceptRollback: true}); err == nil {
						mustBeSound(t, db)
						closeStore(t, db)
					}
					after, err := os.ReadFile(target)
					if kind == "link to nothing" {
						if !os.IsNotExist(err) {
							t.Errorf("what the link names has been created: %v", err)
						}
					} else if err != nil || !bytes.Equal(after, before) {
						t.Errorf("what the link names has been changed: %d bytes of %d, %v", len(after), len(before), err)
					}
				})
			}
		}
	}
	// The folder as a whole may be one.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(stops["closed"], link); err != nil {
		t.Fatal(err)
	}
	db := open(t, link, bolt.Options{})
	mustHaveNumbers(t, db, 12)
	closeStore(t, db)
}

// inTime is bolt.Open, and fails the test if that waits.
func inTime(t *testing.T, dir string, o bolt.Options) (db *bolt.DB, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		db, err = bolt.Open(dir, o)
	}()
	select {
	case <-done:
		return db, err
	case <-time.After(patience):
		t.Fatal("it waits")
		return nil, nil
	}
}
