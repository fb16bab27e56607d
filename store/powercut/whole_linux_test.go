package powercut_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/store/powercut/lazyfs"
)

// P7: the power goes at any operation of a compaction, and of a restore from a
// backup. The store is then the one of before or the new one, whole; after the
// restore was confirmed, the new one; and no number comes again.
//
// Leave a sync of the copy or of its folder out and this fails.
func TestPowerCut_CompactAndRestore(t *testing.T) {
	d := mount(t)
	if said, killed := run(t, "whole", d.dir); said != "" || !killed {
		t.Fatalf("the script did not come to its end: %s", said)
	}
	log := d.log(t)
	cuts(t, nil, log, expectation{hashes: []string{empty()}}, 99)

	// The same backup in a folder that is not there yet.
	d.ask(t, "load "+emptyImage(t))
	models := modelsOf(t, log)
	if err := lazyfs.Save(modelFile(d.dir), models[slices.IndexFunc(whole(), func(s step) bool { return s.name == "back up" })]); err != nil {
		t.Fatal(err)
	}
	if said, killed := run(t, "anew", d.dir); said != "" || !killed {
		t.Fatalf("the restore did not come to its end: %s", said)
	}
	cuts(t, nil, d.log(t), expectation{hashes: []string{empty()}}, 100)
}

// whole is a life with operations on the file as a whole.
func whole() []step {
	closeIt := do("close", func(_ context.Context, w *world) error { return w.h.Close() })
	return []step{
		open,
		do("declare the actors", func(ctx context.Context, w *world) error { return w.h.Box.SetActors(ctx, actors()) }),
		send("a", "work", mailbox.Outgoing{Body: make([]byte, 100<<10)}),
		send("b", "work", mailbox.Outgoing{Body: []byte("b")}),
		begin("A", "work", 1),
		claim("A", "a", "N"),
		settle("A", "a", mailboxtest.Completed("result"), "D", nil, "other"),
		purge(mailbox.Done, "D"),
		closeIt,
		do("compact", func(ctx context.Context, w *world) error {
			_, _, err := bolt.Compact(ctx, w.h.Dir, bolt.Options{})
			return err
		}),
		open,
		reconcile,
		send("c", "work", mailbox.Outgoing{Body: []byte("c")}),
		do("back up", func(ctx context.Context, w *world) (err error) {
			f, err := os.Create(w.backup())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			w.old = maps.Clone(w.model)
			return w.h.DB.Backup(ctx, f, "", nil)
		}),
		send("d", "work", mailbox.Outgoing{Body: []byte("d")}),
		closeIt,
		restore,
		open,
		send("e", "work", mailbox.Outgoing{Body: []byte("e")}),
		after(time.Second),
	}
}

// restore puts the backup in the place of the store.
var restore = do("restore", func(ctx context.Context, w *world) error {
	w.store.note("loose")
	db, err := bolt.Restore(ctx, w.h.Dir, w.backup(), bolt.Restoring{}, bolt.Options{})
	if err != nil {
		return err
	}
	if w.old != nil {
		w.model = w.old
	}
	w.store.stored("done", contentOf(db))
	return db.Close()
})

// backup is where the backup lies: beside the disk that loses its power.
func (w *world) backup() string { return filepath.Dir(w.h.Dir) + ".backup" }
