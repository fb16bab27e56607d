package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func (db *DB) kept() string { return filepath.Join(db.dir, KeptFile) }

// another returns a DB for the store of which db holds the lock, not yet open.
func (db *DB) another(readOnly bool) *DB {
	o := db.options
	o.ReadOnly, o.reached = readOnly, func(string) {}
	other := &DB{dir: db.dir, options: o, failed: make(chan struct{})}
	other.setFill(o.AppendOnly)
	return other
}

// foldOld moves what the log of the store that is there holds into its mailbox.db, and
// returns what that says then: zero where there is no store, or none that can be read. A
// log that does not belong to it is left alone. It changes nothing of a store that was
// closed in order; a crash leaves the log where it was, or a log that nothing names.
//
// An error says why there is no store to be had of the file alone.
func (db *DB) foldOld(m mark, markErr error) (old state, err error) {
	old, err = stateOf(db.path())
	if err != nil || old.log == 0 {
		return old, err
	}
	whole := db.another(false)
	if whole.reserve, err = openReserve(db.dir); err == nil {
		_, err = whole.openNewest(m, markErr)
	}
	if err = errors.Join(err, whole.release()); err != nil {
		return old, err
	}
	return stateOf(db.path())
}

// showOld calls fn, which may be nil, with the store that is there, for a backup that
// says s (see Restoring.Replaced). err is why it cannot be read, if that is known.
func (db *DB) showOld(fn func(*DB, uint64, bool, error), s state, err error) {
	if _, missing := os.Lstat(db.path()); fn == nil || errors.Is(missing, fs.ErrNotExist) {
		return
	}
	old := db.another(true)
	if err == nil {
		err = old.openForReading()
	}
	if err != nil {
		fn(nil, 0, false, errors.Join(err, old.release()))
		return
	}
	fn(old, s.sequence, old.state.id != s.id, nil)
	_ = old.Close() // it was only read
}

// keepOld gives the mailbox.db that is there a second name, which takes no room, and
// which settleKept turns into KeptFile once the first is another file's. Where a file can
// have one name only, that is it.
func (db *DB) keepOld() error {
	doing := "keep the store that is replaced, as " + db.kept()
	if err := db.settleKept(); err != nil { // of a restore that has not come to its end
		return fileRefusal(doing, err)
	}
	info, err := os.Lstat(db.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // what was kept before is still what was replaced last
	}
	if err == nil {
		err = strange(db.path(), info.Mode())
	}
	if err != nil {
		return fileRefusal(doing, err)
	}
	err = os.Link(db.path(), db.kept()+unfinished)
	if err != nil && !isFull(err) { // a file system without second names
		err = os.Rename(db.path(), db.kept()+unfinished)
	}
	if err != nil {
		return fileRefusal(doing, err)
	}
	return nil
}

// settleKept ends what keepOld has begun. Where the file was replaced, its second name
// becomes KeptFile, in the place of what was kept before. Where it was not, it has its
// first name alone.
func (db *DB) settleKept() error {
	name := db.kept() + unfinished
	kept, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own, err := os.Lstat(db.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(name, db.path())
	case err != nil:
		return err
	case os.SameFile(kept, own):
		return os.Remove(name)
	}
	return os.Rename(name, db.kept())
}
