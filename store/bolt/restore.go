package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
)

// Restoring is how the caller of Restore takes part in it; the zero value does not.
type Restoring struct {
	// Progress is told of the bytes copied so far, and of how many there are.
	Progress func(done, total int64)
	// Replaced is given the store that is about to be replaced, open for reading until
	// it returns, or why that cannot be read. It is not called where there is none.
	// since is the greatest message number that the backup knows of: what that store has
	// behind it is newer. other says that the backup is of a store of another identity,
	// such as that from which this one was once restored: then no number says so.
	Replaced func(old *DB, since uint64, other bool, err error)
}

// Restore puts the backup in the file from in the place of the store in the
// folder dir, which it creates if needed, and opens it as Open does. It starts a
// new epoch: all numbers are greater than any that the store in the folder, or the
// one that the backup was taken of, can have given. The caller must park what the
// backup holds as claimed (see DB.Epoch).
//
// The mailbox.db that it replaces is kept as KeptFile, with all that was confirmed in
// it, so that Restore takes that as well; the one that was kept before is gone then. Of
// a store that cannot be opened the file alone is kept, as it is. A crash at any point,
// and an error, leaves the store of before, or the new one.
//
// It is refused like Open; store_corrupt also where the backup is damaged, and
// bad_request where it is the store's own file, or was copied out of a store in use
// without its log. AcceptRollback and ReadOnly are ignored.
func Restore(ctx context.Context, dir, from string, to Restoring, o Options) (*DB, error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	o.ReadOnly, o.AcceptRollback = false, false
	if o.reached == nil {
		o.reached = func(string) {}
	}
	if to.Progress == nil {
		to.Progress = func(int64, int64) {}
	}
	doing := "restore " + from
	source, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		return nil, fileRefusal(doing, err)
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return nil, fileRefusal(doing, err)
	}
	if !info.Mode().IsRegular() {
		return nil, refusal.New(refusal.BadRequest, doing, "it is no regular file", "name a file that `sovereign backup` has written")
	}
	if err := makeFolder(dir); err != nil {
		return nil, fileRefusal("create the folder of the store, "+dir, err)
	}
	if err := syncAncestors(dir); err != nil {
		return nil, fileRefusal("create the folder of the store, "+dir, err)
	}
	lock, err := lockDir(dir, false)
	if err != nil {
		return nil, err
	}
	db := &DB{dir: dir, options: o, lock: lock, failed: make(chan struct{})}
	db.setFill(o.AppendOnly)
	if present, err := os.Stat(db.path()); err == nil && os.SameFile(info, present) {
		err := refusal.New(refusal.BadRequest, doing, "it is the store's own "+DataFile, "name a file that `sovereign backup` has written")
		return nil, errors.Join(err, db.release())
	}
	err = db.replace(ctx, source, info.Size(), to)
	if err == nil {
		err = db.openForWriting()
	}
	if err != nil {
		return nil, errors.Join(err, db.release())
	}
	return db, nil
}

// replace makes a database of the backup in source and puts it in place.
func (db *DB) replace(ctx context.Context, source *os.File, size int64, to Restoring) (err error) {
	doing := "restore " + source.Name()
	m, markErr := readMark(db.dir)
	if markErr != nil && !errors.Is(markErr, errNoMark) && !errors.Is(markErr, errBadMark) {
		return fileRefusal("read the high-water mark of the store in "+db.dir, markErr)
	}
	// 1. The copy, looked through before it counts. A crash leaves a file that the
	// next opening removes.
	defer func() {
		if err != nil {
			_ = os.Remove(db.temp())
		}
	}()
	if err := copyTo(ctx, db.temp(), source, size, to.Progress); err != nil {
		return fileRefusal(doing, err)
	}
	if err := soundCopy(ctx, db.temp()); err != nil {
		return badBackup(doing, err)
	}
	s, err := stateOf(db.temp())
	if err != nil {
		return badBackup(doing, err)
	}
	if s.schema > schemaVersion {
		return newerSchema(doing, s)
	}
	if s.log != 0 {
		// All that the log held then is in a backup, and in no other copy.
		ok, err := labelled(source, size)
		if err != nil {
			return badBackup(doing, err)
		}
		if !ok && !(s.schema <= lastUnlabelled && copied(source, size)) {
			return noBackup(doing)
		}
	}
	// 2. All that was confirmed before, in one file. It may be damaged, which is why it is
	// being replaced: then only the mark speaks for it.
	old, err := db.foldOld(m, markErr)
	db.showOld(to.Replaced, s, err)
	// 3. Its new epoch, within the copy.
	s = restored(s, old, m, markErr, db.options.wall())
	if err := writeState(db.temp(), s); err != nil {
		return fileRefusal(doing, err)
	}
	db.options.reached("copy made")
	// 4. A mark for it where there is none to go by. A crash after it leaves a
	// folder without a store, or one that is refused as before.
	if markErr != nil {
		if err := writeMark(db.dir, mark{id: s.id}); err != nil {
			return fileRefusal(doing, err)
		}
		db.options.reached("mark replaced")
	}
	// 5. A second name for what is replaced. A crash after it leaves one that the next
	// opening removes.
	if err := db.keepOld(); err != nil {
		return err
	}
	db.options.reached("store kept")
	// 6. The copy's name. From here on it is the store; openForWriting does the rest,
	// now or after a crash, and gives what was replaced its name.
	if err := os.Rename(db.temp(), db.path()); err != nil {
		return fileRefusal(doing, errors.Join(err, db.settleKept()))
	}
	if err := syncDir(db.dir); err != nil {
		return fileRefusal(doing, err)
	}
	db.options.reached("copy named")
	return nil
}

// copyTo writes source to a new file name and syncs it.
func copyTo(ctx context.Context, name string, source io.Reader, size int64, progress func(done, total int64)) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := openFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	to := &stoppable{ctx: ctx, w: io.MultiWriter(f, &counter{total: size, progress: progress})}
	_, err = io.CopyBuffer(to, struct{ io.Reader }{source}, make([]byte, 256<<10))
	return errors.Join(err, f.Sync(), f.Close())
}

// counter is a writer that tells how much was written to it.
type counter struct {
	done, total int64
	progress    func(done, total int64)
}

func (c *counter) Write(b []byte) (int, error) {
	c.done += int64(len(b))
	c.progress(c.done, c.total)
	return len(b), nil
}

func badBackup(doing string, err error) error {
	if _, refused := errors.AsType[*refusal.Error](err); refused || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return refusal.New(refusal.StoreCorrupt, doing, "the backup is damaged, or none: "+err.Error(),
		"restore another one; the store is as it was").Because(err)
}

// soundCopy returns the first problem of the database in the file name.
func soundCopy(ctx context.Context, name string) error {
	file, err := openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f, bad, err := openPages(file, info.Size())
	if err != nil {
		return err
	}
	var found error
	err = checkPages(ctx, f, bad, func(problem error) bool {
		found = problem
		return false
	})
	return errors.Join(err, found)
}

// stateOf reads the state record of the database in the file name, which nobody
// has open for writing.
func stateOf(name string) (s state, err error) {
	file, err := openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return state{}, err
	}
	info, err := file.Stat()
	if err == nil {
		err = preflight(file, info.Size())
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return state{}, err
	}
	err = withFile(name, true, func(d *bbolt.DB) error {
		return d.View(func(tx *bbolt.Tx) error {
			if tx.Bucket(countersName) == nil {
				return errBadRecord
			}
			s, err = readState(tx)
			return err
		})
	})
	return s, err
}

// writeState replaces the state record of the database in the file name.
func writeState(name string, s state) error {
	return withFile(name, false, func(d *bbolt.DB) error {
		return d.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(stateKey, s.encode(nil)) })
	})
}

// withFile calls fn with the database in the file name open. A panic of bbolt is
// an error; then the file stays open as long as the process lives.
func withFile(name string, readOnly bool, fn func(*bbolt.DB) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("read "+name, p)
		}
	}()
	d, err := bbolt.Open(name, 0o600, &bbolt.Options{Timeout: 1, OpenFile: openFile, ReadOnly: readOnly, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	return errors.Join(fn(d), d.Close())
}
