package bolt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/sovereign-run/sovereign/store/wal"
)

// A log file is full with so many bytes: a file has as many, and half as many again
// at most. What both hold, on pages of mailbox.db, must fit into half of the reserve:
// or what was confirmed could not be moved there on a full disk, and the end of
// running work not be stored any more.
const (
	logShare = 8       // of the reserve: one part in so many
	logMost  = 2 << 20 // also where there is no reserve
	logFirst = 64 << 10
)

// rotation is a checkpoint in progress: its table is frozen, and its log file is out
// of use when it is over. err is read after done.
type rotation struct {
	done chan struct{}
	err  error
}

// openLog opens the files of the log, for writing. Nothing in them is needed any more.
func (db *DB) openLog() error {
	db.limit = logMost
	if db.reserve.size > 0 {
		db.limit = min(logMost, db.reserve.size/logShare)
	}
	if db.options.LogSize > 0 {
		db.limit = db.options.LogSize
	}
	if err := db.checkSpareLog(); err != nil {
		return err
	}
	created := false
	for i, name := range LogFiles {
		f := db.logs[i]
		if f == nil {
			file, err := openFile(filepath.Join(db.dir, name), os.O_RDWR|os.O_CREATE, 0o600)
			if err == nil {
				f, err = wal.Open(file)
			}
			if err != nil {
				return fileRefusal("open the log of the store in "+db.dir, err)
			}
			db.logs[i] = f
		}
		first := min(logFirst, db.limit*3/2)
		created = created || f.Size() < first
		if err := f.Grow(first); err != nil {
			return fileRefusal("make the log of the store in "+db.dir, err)
		}
	}
	// The room that they have, the beginning of the second, and the names.
	err := errors.Join(db.beginSpare(), db.logs[0].Settle(), db.logs[1].Settle())
	if created {
		err = errors.Join(err, syncDir(db.dir))
	}
	if err != nil {
		return fileRefusal("make the log of the store in "+db.dir, err)
	}
	return nil
}

// beginSpare begins the second file, if nothing ever has: from then on one that is all
// zeros was overwritten, and is not taken for one in which nothing was committed yet. It
// is not synced.
func (db *DB) beginSpare() error {
	if begun, err := db.logs[1].Begun(); begun || err != nil {
		return err
	}
	return db.logs[1].Begin(newSalt(), db.state.batch, encodeHead(&db.state))
}

// checkSpareLog returns nil if the log files, of which nothing is needed, can be used.
func (db *DB) checkSpareLog() error {
	for _, name := range LogFiles {
		f, err := openLogFile(filepath.Join(db.dir, name))
		switch {
		case errors.Is(err, wal.ErrUnreadable):
			return unneededLog("open the store in "+db.dir, name, err)
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil:
			err = f.Close()
		}
		if err != nil {
			return fileRefusal("open the store in "+db.dir, err)
		}
	}
	return nil
}

// openLogFile opens the log file with the name path for reading. It fails with
// wal.ErrUnreadable if that is none, and with fs.ErrNotExist.
func openLogFile(path string) (*os.File, error) {
	f, err := openFile(path, os.O_RDONLY, 0)
	if e, ok := errors.AsType[*strangeError](err); ok {
		return nil, fmt.Errorf("%w: it is %s", wal.ErrUnreadable, e.is)
	}
	if err != nil {
		return nil, err
	}
	if err := wal.Check(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// loadLog reads the log file with the name path; one that is missing is an empty one. It
// fails as openLogFile does.
func loadLog(path string) (wal.Content, error) {
	f, err := openLogFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return wal.Load(f)
}

// newSalt returns a salt that no use of a log file has had.
func newSalt() uint64 { return rand.Uint64() | 1 } // never 0

// startLog begins a use of the first file, for the batches of this opening.
func (db *DB) startLog() error {
	salt := newSalt()
	log := db.logs[0]
	err := log.Begin(salt, db.state.batch, encodeHead(&db.state))
	if err == nil {
		err = log.Sync()
	}
	if err != nil {
		return fileRefusal("begin the log of the store in "+db.dir, err)
	}
	db.layers.Store(&layers{active: newTable(salt, log)})
	db.options.reached("log begun")
	return nil
}

// saltBehind returns the salt of the log file that follows the one with salt: who
// knows the first knows what to look for in the other file.
func saltBehind(salt uint64, id [idSize]byte) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(id[:], salt))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// makeRoom has the next batch begin in a log that is not full. It waits for a
// checkpoint only if that has not ended before the other file was full as well.
func (db *DB) makeRoom() error {
	l := db.layers.Load()
	if l.active.log.Len() < db.limit && !db.cramped {
		return nil
	}
	if err := db.endRotation(); err != nil {
		return err
	}
	return db.rotate()
}

// rotate has commits go on in the other log file, and starts the checkpoint of what
// is in this one.
func (db *DB) rotate() error {
	// The other file says which batch it goes on behind: that one must not be taken.
	if err := db.sync(); err != nil {
		return err
	}
	full := db.layers.Load().active
	spare := db.logs[0]
	if spare == full.log {
		spare = db.logs[1]
	}
	// Nothing names the spare file: mailbox.db names the full one.
	if err := spare.Grow(full.log.Size()); err != nil && !isFull(err) {
		return notStored(err)
	}
	if err := spare.Settle(); err != nil {
		return db.unknown(err)
	}
	salt := saltBehind(full.salt, db.state.id)
	if err := spare.Begin(salt, db.state.batch, encodeHead(&db.state)); err != nil {
		return notStored(err)
	}
	// On disk before anything else is in that file, so that a commit without a head is
	// damage; and before mailbox.db names it. Only who appends may sync the file: the
	// kernel tells of a page that it could not write once.
	if err := spare.Sync(); err != nil {
		return db.unknown(err)
	}
	full.last = db.state.batch
	db.layers.Store(&layers{active: newTable(salt, spare), frozen: full})
	db.cramped = false
	db.options.reached("log turned")
	r := &rotation{done: make(chan struct{})}
	db.rotation = r
	go func() {
		defer close(r.done)
		r.err = db.move(full.last, false, db.moveHook)
		if r.err == nil {
			db.thaw()
		}
	}()
	return nil
}

// thaw ends a checkpoint: the frozen table is in mailbox.db, which names the log file
// behind it.
func (db *DB) thaw() {
	db.layers.Store(&layers{active: db.layers.Load().active})
	db.options.reached("log retired")
}

// stalled reports whether a checkpoint has failed, so that what it was to move waits.
func (db *DB) stalled() bool {
	if db.rotation == nil {
		return false
	}
	select {
	case <-db.rotation.done:
		return db.rotation.err != nil
	default:
		return false
	}
}

// endRotation waits for the checkpoint in progress, if there is one. If it has failed
// it is made again, with the reserve.
func (db *DB) endRotation() error {
	if db.rotation == nil {
		return nil
	}
	<-db.rotation.done
	if db.rotation.err != nil {
		goal := db.visible.Load()
		if err := db.withReserve(func() error { return db.move(goal, false, db.moveHook) }); err != nil {
			return err
		}
		db.thaw()
	}
	db.rotation = nil
	return nil
}

// storeDirect stores b in mailbox.db, with all that comes before it, since it does
// not fit into the log.
func (db *DB) storeDirect(b *batch) error {
	if err := db.sync(); err != nil {
		return err
	}
	if db.rotation != nil {
		<-db.rotation.done
	}
	if err := db.move(b.at-1, false, db.moveHook); err != nil {
		return err
	}
	if err := db.move(b.at, false, db.commitHook); err != nil {
		return err
	}
	// All is in mailbox.db, what a checkpoint has failed to move as well. The file
	// goes on where it was.
	db.rotation = nil
	active := b.out.table
	db.layers.Store(&layers{active: newTable(active.salt, active.log)})
	return nil
}

// moveHook calls commit through the hook that tests may have set, and turns a panic
// of bbolt into an error.
func (db *DB) moveHook(commit func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	if db.options.move != nil {
		return db.options.move(commit)
	}
	return commit()
}
