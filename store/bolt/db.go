package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/wal"
)

// A DB is an open store. Its methods may be called from any goroutine.
type DB struct {
	dir     string
	options Options
	lock    *os.File // held until Close; nil for a reader of a store nobody opened
	file    *os.File // mailbox.db, as bbolt has it open
	bolt    *bbolt.DB
	clock   leaseClock
	fill    [256]float64 // FillPercent by space
	age     error        // of a store that is open for reading: why Open would refuse it

	group group
	// The leader's, one at a time: handed on under group.mu.
	batch    batch
	state    state
	mark     mark
	reserve  reserve
	fullness fullness
	logs     [2]*wal.File
	limit    int64     // bytes that a log file holds
	cramped  bool      // the log file in use can grow no more
	rotation *rotation // the last checkpoint, until it is known to have succeeded
	unsynced unsynced

	layers  atomic.Pointer[layers]
	visible atomic.Uint64 // the last batch that is durable, or asynchronous and answered
	direct  atomic.Pointer[directBatch]
	moves   moves

	calls sync.Pool // of *call
	views sync.Pool // of *reader

	life  lifetime
	stats counts

	stuck    atomic.Bool // bbolt panicked and may hold its locks
	failOnce sync.Once
	failed   chan struct{}
	fail     atomic.Pointer[error]
}

var _ store.Store = (*DB)(nil)

// lifetime counts the calls in progress, so that Close can wait for them.
type lifetime struct {
	mu     sync.Mutex
	users  int
	closed bool
	idle   chan struct{} // made by close, closed when users is 0
}

var errClosed = refusal.New(refusal.Unavailable, "use the store", "it is closed", "ask again once the supervisor runs, or start one with `sovereign run`")

func (l *lifetime) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	l.users++
	return nil
}

func (l *lifetime) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.closed && l.users == 0 {
		close(l.idle)
	}
}

// close lets no one in any more, and waits for those inside. It reports false
// if that was done before.
func (l *lifetime) close() bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.closed = true
	l.idle = make(chan struct{})
	if l.users == 0 {
		close(l.idle)
	}
	l.mu.Unlock()
	<-l.idle
	return true
}

// Update implements store.Store. On an idle store the function runs on the
// caller's goroutine; otherwise it may run on another caller's, but a panic is
// always raised on the caller's own. A function must not call runtime.Goexit
// (t.FailNow does): the goroutine that happens to run it may be ended as well.
// It must not call Update on the same store, which would wait for itself.
//
// Besides what store.Store names it fails with store_corrupt when the function
// read a damaged page. If a checkpoint met one, the store is given up: Failed is
// closed; what was confirmed is in the log.
func (db *DB) Update(ctx context.Context, fn func(store.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if db.options.ReadOnly {
		return refusal.New(refusal.WrongState, "update the store", "it is open for reading only", "")
	}
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()

	c, _ := db.calls.Get().(*call)
	if c == nil {
		c = &call{wake: make(chan struct{}, 1)}
	}
	c.fn, c.essential = fn, store.IsEssential(ctx)
	db.group.mu.Lock()
	lead := db.group.join(c)
	db.group.mu.Unlock()
	if lead {
		c.lead = true
		db.lead(c)
	} else {
		if err := c.wait(ctx); err != nil {
			return err // The queue still holds c: it is not reused.
		}
		if c.lead {
			db.lead(c)
		}
	}
	err, panicked, exit := c.err, c.panic, c.exit
	c.reset()
	db.calls.Put(c)
	if panicked != nil {
		panic(panicked)
	}
	if exit {
		runtime.Goexit()
	}
	return err
}

// Answers returns nil once the writer has had a turn with nothing to write: then it
// does not hang. Nothing is written, and a full disk is no error. It fails with ctx's
// cause where that ends before the turn, and as Update does where the store has failed.
func (db *DB) Answers(ctx context.Context) error {
	err := db.Update(ctx, func(store.Tx) error { return nil })
	if refusal.Has(err, refusal.DiskFull) {
		return nil
	}
	return err
}

// View implements store.Store. It waits for nobody, and nobody waits for it.
// While it runs, the pages of its state cannot be used again, so that the file
// grows with all that is moved there meanwhile: keep it short. If fn reads a damaged
// page View fails with store_corrupt.
func (db *DB) View(ctx context.Context, fn func(store.Reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()
	if err := db.failure(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	r, _ := db.views.Get().(*reader)
	if r == nil {
		r = &reader{snapshot: new(snapshot)}
	}
	defer func() {
		if r.tx != nil {
			db.giveUp(r.tx)
		}
		r.reset()
		r.err = nil
		db.views.Put(r)
	}()
	func() {
		defer r.guard()
		if err := db.begin(r.snapshot); err != nil {
			r.fail(fmt.Errorf("read the store: %w", err))
		}
	}()
	if r.err != nil {
		return r.err
	}
	return r.run(fn)
}

// run calls fn. A panic of fn that is not a fault on the file is fn's own.
func (r *reader) run(fn func(store.Reader) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if !isFault(p) {
				panic(p)
			}
			err = damaged("read the store", p)
		}
	}()
	err = fn(r)
	if r.err != nil {
		return r.err
	}
	return err
}

// Failed implements store.Store. It is closed as well when a write met damage.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// poison makes err the answer to everything from now on.
func (db *DB) poison(err error) {
	db.failOnce.Do(func() {
		db.fail.Store(&err)
		close(db.failed)
	})
}

func (db *DB) failure() error {
	if err := db.fail.Load(); err != nil {
		return *err
	}
	return nil
}

// Now returns the lease clock: nanoseconds that never run backwards, not even
// over restarts and reboots, and that no change of the wall clock moves. It is
// not less than any instant that Now gave before the last commit of an earlier
// run. Only differences mean something.
func (db *DB) Now() int64 { return db.clock.now() }

// Epoch returns the number of times that a rollback was accepted on this store
// (Options.AcceptRollback), in other words how often its past may have changed.
// Who parks claims after a rollback records the epoch it did that for, and
// compares: a crash in between then loses nothing.
func (db *DB) Epoch() uint64 { return db.state.epoch }

// Close implements store.Store. After a clean Close the mark on disk holds the
// numbers exactly. An error of Close loses nothing that Update has confirmed.
func (db *DB) Close() error {
	if !db.life.close() {
		return errClosed
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var err error
	if db.rotation != nil {
		<-db.rotation.done
	}
	if !db.options.ReadOnly && db.failure() == nil {
		err = db.withReserve(db.settle)
	}
	return errors.Join(err, db.release())
}

// settle writes down what no commit has yet: numbers given to functions that
// failed, and how late it is.
func (db *DB) settle() error {
	// 1. In the database, with all that is in the log, which is out of use then. A
	// crash after it is one before: the mark still says that the store is in use.
	if err := db.recordState(true); err != nil {
		return err
	}
	db.options.reached("closing state recorded")
	// 2. In the mark, which is exact from here on.
	m := db.mark
	m.token, m.sequence, m.batch, m.clean = db.state.token, db.state.sequence, db.state.batch, true
	if err := writeMark(db.dir, m); err != nil {
		return fileRefusal("write the high-water mark of the store in "+db.dir, err)
	}
	db.options.reached("closing mark written")
	return nil
}

// release closes the files. The lock goes last: until then nobody else may open.
func (db *DB) release() error {
	var errs []error
	if db.bolt != nil {
		// A bbolt that panicked may still hold its own locks, and closing it
		// would wait for them for ever. Its file is closed under it instead;
		// the mapping stays until the process ends.
		if db.stuck.Load() {
			errs = append(errs, db.file.Close())
		} else {
			errs = append(errs, db.bolt.Close())
		}
	}
	errs = append(errs, db.logs[0].Close(), db.logs[1].Close(), db.reserve.close())
	if db.lock != nil {
		errs = append(errs, db.lock.Close())
	}
	return errors.Join(errs...)
}
