package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"
)

// compactStep bounds the bytes that one transaction of a compaction copies.
const compactStep = 4 << 20

// Compact rewrites the store in the folder dir without its free pages, and returns
// the size of mailbox.db before and after, in bytes. Nothing else changes: numbers
// go on from where they were. It needs room on the disk for the new file beside
// the old one.
//
// It opens the store as Open does and is refused like it; disk_full where there is
// no room. A crash at any point, and an error, leaves the file of before, or the
// new one.
func Compact(ctx context.Context, dir string, o Options) (before, after int64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	o.ReadOnly = false
	db, err := Open(dir, o)
	if err != nil {
		return 0, 0, err
	}
	before = db.size()
	err = db.compact(ctx)
	after = db.size()
	return before, after, errors.Join(err, db.Close())
}

// compact makes a dense copy of the database and goes on with that. Nobody uses
// db meanwhile.
func (db *DB) compact(ctx context.Context) (err error) {
	doing := "compact the store in " + db.dir
	// 1. The copy, looked through before it counts. A crash leaves a file that the
	// next opening removes.
	defer func() {
		if err != nil {
			_ = os.Remove(db.temp())
		}
	}()
	if err := db.denseCopy(); err != nil {
		return fileRefusal(doing, err)
	}
	if err := soundCopy(ctx, db.temp()); err != nil {
		return fmt.Errorf("%s: the copy is not sound: %w", doing, err)
	}
	if s, err := stateOf(db.temp()); err != nil || string(s.encode(nil)) != string(db.state.encode(nil)) {
		return fmt.Errorf("%s: the copy is not the store that it was made of: %w", doing, errors.Join(err, errBadRecord))
	}
	db.options.reached("copy made")
	// 2. Its name. It has the same numbers and has been opened as often, so the
	// mark fits the one and the other.
	if err := os.Rename(db.temp(), db.path()); err != nil {
		return fileRefusal(doing, err)
	}
	defer func() {
		if err != nil {
			// What is open has no name any more: to close it in order would write there, and
			// a mark beside which the database that has the name is too old.
			db.poison(err)
		}
	}()
	if err := syncDir(db.dir); err != nil {
		return fileRefusal(doing, err)
	}
	db.options.reached("copy named")
	// 3. Go on with it. bbolt locks each file, but nobody else opens one without
	// the lock that we hold.
	if err := db.bolt.Close(); err != nil {
		return fileRefusal(doing, err)
	}
	db.bolt = nil
	return db.openData()
}

// denseCopy copies all that the database holds into a new file and syncs it.
func (db *DB) denseCopy() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("read the store", p)
		}
	}()
	d, err := bbolt.Open(db.temp(), 0o600, &bbolt.Options{Timeout: 1, OpenFile: openFile, NoSync: true, NoGrowSync: true,
		PageSize: db.bolt.Info().PageSize, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = bbolt.Compact(d, db.bolt, compactStep)
	pages := int64(0)
	if err == nil {
		err = d.View(func(tx *bbolt.Tx) error { pages = tx.Size(); return nil })
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	f, err := openFile(db.temp(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	// Pages at the end that are free were never written; they belong to the file
	// all the same.
	if info, statErr := f.Stat(); statErr != nil {
		err = statErr
	} else if info.Size() < pages {
		err = f.Truncate(pages)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
