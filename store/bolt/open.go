package bolt

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
)

// Options of Open. The zero value is right for the product.
type Options struct {
	// AppendOnly lists the spaces whose keys only ever grow. Their pages are
	// filled to nine tenths instead of one half. Nil means all spaces.
	AppendOnly []byte
	// AcceptRollback opens a store that would be refused as store_rolled_back,
	// in a new epoch whose numbers are greater than all that are known from
	// before. The caller must park what the store holds as claimed (see DB.Epoch).
	// It starts a new epoch even if nothing is wrong.
	AcceptRollback bool
	// ReadOnly opens for reading: it creates and changes no file, ignores the
	// mark, and needs only the right to read. What is in the log is read into
	// memory. It is refused, store_locked, while another process has the store open
	// for writing.
	ReadOnly bool
	// Lock is the lock of this store, taken before (DB.HandOver), instead of taking it
	// anew. It belongs to the DB from then on, whether Open succeeds or not.
	Lock *os.File

	// Monotonic replaces the machine's monotonic clock: nanoseconds that do not
	// run backwards within one boot, and the name of the boot. For tests.
	Monotonic func() (ns int64, boot string)
	// Wall replaces the wall clock, which bounds new epochs from below. For tests.
	Wall func() time.Time
	// Commit is called around each commit and returns its result; it may call
	// commit or not, before or after it fails. For tests that inject faults.
	Commit func(commit func() error) error

	// LogSize is how many bytes a file of the log takes before it is moved into
	// mailbox.db; 0: as many as suit the disk. For tests.
	LogSize int64

	// SyncDelay is for how long an asynchronous update may wait for its sync; 0: 10 ms,
	// < 0: until the next one that is not. For tests.
	SyncDelay time.Duration

	// reached is called after each step of Open, Close and a checkpoint that a crash
	// could follow.
	reached func(step string)
	// move is to checkpoints what Commit is to commits. For tests.
	move func(commit func() error) error
}

func (o Options) wall() time.Time {
	if o.Wall != nil {
		return o.Wall()
	}
	return time.Now()
}

// Open opens the store in the folder dir, which it creates if needed, together
// with an empty store, and takes its lock. On return everything that makes the
// store safe to use is on disk; close it with Close.
//
// It is refused with
//
//   - store_locked: another process has it open; try again later;
//   - store_corrupt: damage that could be seen; the file is left as it is;
//   - store_rolled_back: the database is older than its mark, is missing beside
//     one, has none or belongs to another; see Options.AcceptRollback;
//   - wrong_state: a newer version of the program has written it;
//   - disk_full, permission_denied.
func Open(dir string, o Options) (*DB, error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if o.reached == nil {
		o.reached = func(string) {}
	}
	if !o.ReadOnly {
		if err := makeFolder(dir); err != nil {
			return nil, fileRefusal("create the folder of the store, "+dir, err)
		}
	}
	lock, err := o.Lock, error(nil)
	if lock == nil {
		lock, err = lockDir(dir, o.ReadOnly)
	}
	if err != nil {
		return nil, err
	}
	db := &DB{dir: dir, options: o, lock: lock, failed: make(chan struct{})}
	db.setFill(o.AppendOnly)
	if o.ReadOnly {
		err = db.openForReading()
	} else {
		err = db.openForWriting()
	}
	if err != nil {
		return nil, errors.Join(err, db.release())
	}
	return db, nil
}

func (db *DB) setFill(appendOnly []byte) {
	const full = 0.9
	for i := range db.fill {
		db.fill[i] = bbolt.DefaultFillPercent
		if appendOnly == nil {
			db.fill[i] = full
		}
	}
	for _, space := range appendOnly {
		db.fill[space] = full
	}
}

func (db *DB) openForReading() error {
	m, markErr := readMark(db.dir)
	if _, err := os.Lstat(db.path()); errors.Is(err, fs.ErrNotExist) {
		if _, err := planCreation(db.dir, m, markErr, false); err != nil {
			return err // in the words of who would write
		}
	}
	if err := db.openData(); err != nil {
		return err
	}
	s, err := db.readState()
	if err != nil {
		return err
	}
	if db.age = checkAge(db.dir, s, m, markErr); db.age == nil && s.log == 0 {
		db.age = db.checkSpareLog()
	}
	stored := s.batch
	t, s, err := replay(db.dir, s)
	if err != nil {
		return err // what the database says alone is not what was confirmed
	}
	db.moves.stored = stored
	db.lay(t, s)
	db.clock = newLeaseClock(db.options.Monotonic, &s)
	return nil
}

// lay lays what was replayed, which may be nil, over the database.
func (db *DB) lay(t *table, s state) {
	if t == nil {
		t = newTable(0, nil)
	}
	db.state = s
	db.visible.Store(s.batch)
	db.layers.Store(&layers{active: t})
}

// openForWriting brings database and mark together. The order is what makes a
// crash in every gap harmless; plan and age hold the rules.
func (db *DB) openForWriting() error {
	m, markErr := readMark(db.dir)
	if markErr != nil && !errors.Is(markErr, errNoMark) && !errors.Is(markErr, errBadMark) {
		return fileRefusal("read the high-water mark of the store in "+db.dir, markErr)
	}
	if err := db.settleKept(); err != nil {
		return fileRefusal("keep what a restore has replaced, as "+db.kept(), err)
	}
	_, err := os.Lstat(db.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileRefusal("look for the store in "+db.dir, err)
	}
	missing := err != nil
	if missing {
		if m, err = planCreation(db.dir, m, markErr, db.options.AcceptRollback); err != nil {
			return err
		}
		if err := db.create(m); err != nil {
			return err
		}
		markErr = nil
	}
	// What a compaction or a restore did not finish only takes room.
	if err := os.Remove(db.temp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileRefusal("remove an unfinished copy from "+db.dir, err)
	}
	if db.reserve, err = openReserve(db.dir); err != nil {
		return err
	}

	// What the run before has confirmed is on the disk. If it did not end in order
	// its last sync may have failed, and memory may say more than the disk holds.
	if !missing && (markErr != nil || !m.clean) {
		if err := errors.Join(db.distrustCache(), db.distrustLog()); err != nil {
			return err
		}
	}
	// 1.–3. What is there, if it is sound and ours.
	s, err := db.openNewest(m, markErr)
	if err != nil {
		return err
	}
	// 4. Continue the numbers and count this opening, in the database first. A
	// crash after it leaves a database that is younger than its mark, which is no
	// rollback. The other way round it would look like one. The log that it names is
	// there before.
	db.state = resume(db.state, m)
	if db.options.AcceptRollback {
		if err := db.setAside(); err != nil {
			return err
		}
		db.state.begin(leastEpoch(s, m, markErr, db.options.wall()))
	}
	db.clock = newLeaseClock(db.options.Monotonic, &db.state)
	db.state.boot, db.state.offset = db.clock.boot, db.clock.offset
	if err := db.withReserve(db.openLog); err != nil {
		return err
	}
	if err := db.withReserve(db.startLog); err != nil {
		return err
	}
	if err := db.withReserve(func() error { return db.recordState(false) }); err != nil {
		return err
	}
	db.options.reached("database opened")
	// 5. Then the mark, ahead of the numbers and no longer clean. No number has
	// been given yet, so the mark before holds until this one is there. A crash
	// after it is that of a store in use.
	db.mark = mark{
		id: db.state.id, epoch: db.state.epoch, generation: db.state.generation,
		token: ahead(db.state.token), sequence: ahead(db.state.sequence),
	}
	err = db.withReserve(func() error {
		if err := writeMark(db.dir, db.mark); err != nil {
			return fileRefusal("write the high-water mark of the store in "+db.dir, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	db.options.reached("mark written")
	return nil
}

// openNewest opens the database beside the mark m for writing, and moves what the run
// before has left in the log into it. It returns the state that the database was in.
func (db *DB) openNewest(m mark, markErr error) (s state, err error) {
	// 1. Open what is there, if it is sound and ours.
	if err := db.openData(); err != nil {
		return state{}, err
	}
	s, err = db.readState()
	if err != nil {
		return s, err
	}
	// 2. Compare its age with the mark's.
	if !db.options.AcceptRollback {
		if err := checkAge(db.dir, s, m, markErr); err != nil {
			return s, err
		}
	}
	// 3. What the run before has left in the log goes into the database, which has no
	// log from then on. A crash after it leaves a log that nothing names.
	db.moves.stored, db.moves.salt = s.batch, s.log
	t, replayed, err := replay(db.dir, s)
	accepted := db.options.AcceptRollback && (refusal.Has(err, refusal.StoreRolledBack) || refusal.Has(err, refusal.StoreCorrupt))
	if err != nil && !accepted {
		return s, err
	}
	db.lay(t, replayed)
	if s.log != 0 {
		db.clock = newLeaseClock(db.options.Monotonic, &db.state)
		if err := db.withReserve(func() error { return db.recordState(true) }); err != nil {
			return s, err
		}
	}
	return s, nil
}

// recordState stores the state in the database, with all that is in the log; end says
// that no log is in use from then on.
func (db *DB) recordState(end bool) error {
	db.state.batch++
	db.state.instant = db.clock.now()
	db.layers.Load().active.states.put(db.state.batch, stateKey, db.state.encode(nil), nil)
	if err := db.move(db.state.batch, end, db.moveHook); err != nil {
		return err
	}
	db.visible.Store(db.state.batch)
	db.state.log = db.moves.salt
	db.layers.Store(&layers{active: newTable(db.moves.salt, db.layers.Load().active.log)})
	return nil
}

func (db *DB) path() string { return filepath.Join(db.dir, DataFile) }

// temp is where a database is made that is to take the place of the present one.
func (db *DB) temp() string { return db.path() + unfinished }

// size returns the bytes of the database file, 0 if they cannot be had.
func (db *DB) size() int64 {
	info, err := db.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func newID() (id [idSize]byte) {
	rand.Read(id[:])
	return id
}
