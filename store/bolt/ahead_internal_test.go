package bolt

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	bbolt "go.etcd.io/bbolt"
)

// noted notes which pages are read.
type noted struct {
	io.ReaderAt
	pages map[int64]int // by offset: how often
}

func (n noted) ReadAt(p []byte, at int64) (int, error) {
	n.pages[at]++
	return n.ReaderAt.ReadAt(p, at)
}

// A look at the branches says beforehand which it will read, and announces no leaf. Leave
// willRead out, or have it announce all children, and this fails.
func TestPreflight_AnnouncesBranches(t *testing.T) {
	name := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, PageSize: 1024})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := 0; i < 20_000 && err == nil; i++ {
			err = b.Put(fmt.Appendf(nil, "%08d", i), make([]byte, 80))
		}
		return err
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	read := noted{file, map[int64]int{}}
	f, _, err := openPages(read, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	announced := map[int64]bool{}
	f.ahead = func(at, _ int64) { announced[at] = read.pages[at] == 0 }
	w := walker{pageFile: f, ctx: context.Background(), report: func(problem error) bool { t.Error(problem); return true }}
	w.run()
	unannounced := 0
	for at := range read.pages {
		if !announced[at] {
			unannounced++
		}
	}
	for at, before := range announced {
		if !before || read.pages[at] == 0 {
			t.Errorf("the page at %d was read before, or not at all", at)
		}
	}
	if len(announced) < 20 || unannounced > 8 {
		t.Errorf("%d pages read, %d of them announced", len(read.pages), len(announced))
	}
}
