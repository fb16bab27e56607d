package bolt_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// disks are the full disks that there are here.
var disks = []struct {
	name  string
	mount func(t *testing.T, dir string)
}{
	{"tmpfs", mountTmpfs},
	{"ext4", mountExt4},
	{"ext4 with a journal", mountJournaled},
}

// fillDisk writes the file name until there is no room left on its disk, but for
// spare bytes.
func fillDisk(t *testing.T, name string, spare int64) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := int64(0)
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			wrote, err := f.Write(make([]byte, size))
			n += int64(wrote)
			if err != nil {
				break
			}
		}
	}
	if err := f.Truncate(max(0, n-spare)); err != nil {
		t.Fatal(err)
	}
	f.Sync() // a journal frees blocks only when written
}

// H1, report 4.6 #66 (the guard did nothing where the disk was full at the start):
// with no room left at all, or only for so many blocks, sends are refused disk_full
// and what is essential works all the same, from opening the store to closing it: so
// does every update that moves the mark. When there is room again sends go on by themselves. Everything confirmed is there, nothing else. Leave out
// the reserve, at any of the writes, and this fails.
func TestUpdate_EssentialWorksOnAFullDisk(t *testing.T) {
	for _, disk := range disks {
		t.Run(disk.name, func(t *testing.T) {
			root := t.TempDir()
			disk.mount(t, root)
			for spare := int64(0); spare <= 96<<10; spare += 6 << 10 {
				dir := fmt.Sprintf("%s/%d", root, spare)
				db := open(t, dir, bolt.Options{})
				update(t, db, func(tx store.Tx) {
					for i := range 20 {
						tx.Put(fmt.Appendf(nil, "old%02d", i), make([]byte, 1000))
					}
				})
				closeStore(t, db)
				fillDisk(t, root+"/ballast", spare)

				db, err := bolt.Open(dir, bolt.Options{})
				if err != nil {
					t.Fatalf("spare %d: open on a full disk: %v", spare, err)
				}
				want := map[string]bool{}
				put := func(essential bool, key string, size int) error {
					c := ctx
					if essential {
						c = store.Essential(ctx)
					}
					err := db.Update(c, func(tx store.Tx) error {
						tx.Put([]byte(key), make([]byte, size))
						tx.Add([]byte("n"), 1)
						tx.Mint("r")
						return nil
					})
					if err == nil {
						want[key] = true
					} else if !refusal.Has(err, refusal.DiskFull) {
						t.Fatalf("spare %d: %s: %v", spare, key, err)
					}
					return err
				}
				refused := 0
				for i := range 40 {
					_, changed := db.Full()
					err := put(false, fmt.Sprintf("send%02d", i), 20_000)
					if err != nil {
						refused++
					}
					if full, _ := db.Full(); full != (err != nil) {
						t.Fatalf("spare %d: it says that it is full: %v, after %v", spare, full, err)
					} else if full && refused == 1 {
						<-changed
					}
					if i == 20 {
						token, sequence, _ := mintOneEssential(t, db)
						bolt.SkipTo(db, token+bolt.MarkBlock, sequence+bolt.MarkBlock)
					}
					if i%4 == 0 {
						if err := put(true, fmt.Sprintf("end%02d", i), 500); err != nil {
							t.Fatalf("spare %d: an essential update: %v", spare, err)
						}
					}
				}
				if refused < 20 {
					t.Errorf("spare %d: only %d sends were refused: the disk was not full", spare, refused)
				}
				if spare%(24<<10) == 0 { // and once more on the full disk
					closeStore(t, db)
					db = open(t, dir, bolt.Options{})
				}
				if err := os.Remove(root + "/ballast"); err != nil {
					t.Fatal(err)
				}
				if err := put(false, "room", 20_000); err != nil {
					t.Errorf("spare %d: with room again: %v", spare, err)
				}
				if full, _ := db.Full(); full {
					t.Errorf("spare %d: it says that it is full, with room again", spare)
				}
				view(t, db, func(r store.Reader) {
					n := 0
					for _, space := range []string{"send", "end", "room"} {
						r.Scan([]byte(space), []byte(space+"~"), func(k, _ []byte) bool {
							if n++; !want[string(k)] {
								t.Errorf("spare %d: %s is stored, and was refused", spare, k)
							}
							return true
						})
					}
					if n != len(want) || r.Sum([]byte("n")) != int64(n) {
						t.Errorf("spare %d: %d are stored, counted %d, confirmed %d", spare, n, r.Sum([]byte("n")), len(want))
					}
				})
				mustBeSound(t, db)
				closeStore(t, db)
				if info, err := os.Stat(dir + "/" + bolt.ReserveFile); err != nil || info.Size() == 0 {
					t.Errorf("spare %d: the reserve has not been taken again: %v", spare, err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func mintOneEssential(t *testing.T, db *bolt.DB) (token, sequence, entry uint64) {
	t.Helper()
	err := db.Update(store.Essential(ctx), func(tx store.Tx) error {
		token, sequence, entry = tx.Mint("r"), tx.Next(), tx.Append('l', nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return token, sequence, entry
}

// One batch of both kinds on a full disk: the essential ones are stored, the others
// refused, and who failed by itself keeps its own answer.
func TestUpdate_KeepsTheEssentialOfABatch(t *testing.T) {
	db, f, _ := openFaulty(t)
	defer closeStore(t, db)
	running, finish := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- db.Update(ctx, func(store.Tx) error { close(running); <-finish; return nil })
	}()
	<-running
	f.set(func(func() error) error { return &fs.PathError{Op: "write", Err: syscall.ENOSPC} })
	var got [9]error
	done := make(chan int, len(got))
	for i := range got {
		go func() {
			c := ctx
			if i%3 == 0 {
				c = store.Essential(ctx)
			}
			got[i] = db.Update(c, func(tx store.Tx) error {
				tx.Put(fmt.Appendf(nil, "x%d", i), nil)
				if i%3 == 2 || i == 3 {
					return errInjected
				}
				return nil
			})
			done <- i
		}()
	}
	bolt.WaitQueued(db, len(got))
	close(finish)
	for range got {
		<-done
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	for i, err := range got {
		switch {
		case i%3 == 2 && refusal.Has(err, refusal.DiskFull): // it ran behind a writer
		case i%3 == 2, i == 3:
			if err != errInjected {
				t.Errorf("caller %d: got %v", i, err)
			}
		case i%3 == 0:
			if err != nil {
				t.Errorf("essential caller %d: got %v", i, err)
			}
		case !refusal.Has(err, refusal.DiskFull):
			t.Errorf("caller %d: got %v", i, err)
		}
	}
	var stored []string
	view(t, db, func(r store.Reader) {
		r.Scan([]byte("x"), nil, func(k, _ []byte) bool { stored = append(stored, string(k)); return true })
	})
	if s := strings.Join(stored, " "); s != "x0 x6" {
		t.Errorf("stored: %s", s)
	}
	mustBeSound(t, db)
}

// A store on a disk that was made read-only can be read, checked and backed up, and
// opening it for writing is refused with the reason.
func TestOpen_ReadsAReadOnlyDisk(t *testing.T) {
	root := t.TempDir()
	mountExt4(t, root)
	dir := root + "/store"
	db := open(t, dir, bolt.Options{})
	update(t, db, func(tx store.Tx) { tx.Put([]byte("k"), []byte("v")) })
	closeStore(t, db)
	remountReadOnly(t, root)
	if _, err := bolt.Open(dir, bolt.Options{}); !refusal.Has(err, refusal.PermissionDenied) {
		t.Errorf("for writing: got %v", err)
	}
	db = open(t, dir, bolt.Options{ReadOnly: true})
	mustHaveKey(t, db, "k", true)
	mustBeSound(t, db)
	file := backup(t, db)
	closeStore(t, db)
	db = restoreStore(t, t.TempDir(), file, bolt.Options{})
	mustHaveKey(t, db, "k", true)
	closeStore(t, db)
	if err := bolt.CheckFile(ctx, dir, func(problem error) bool { t.Error(problem); return true }); err != nil {
		t.Error(err)
	}
}
