package bolt

import (
	"errors"
	"fmt"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// commit makes b durable. After an error it has decided which of three things is
// true, and the error says so:
//
//   - disk_full: nothing of b is stored, and the store goes on;
//   - another error that says "nothing was stored": the same, for another reason;
//   - outcome_unknown: b may or may not be stored, and the store is poisoned.
func (db *DB) commit(b *batch) error {
	// 1. The mark, before any number beyond it can be on disk. A crash after it
	// leaves a mark that is further ahead than it needs to be.
	if err := db.markAhead(); err != nil {
		return notStored(err)
	}
	// 2. All of the batch, and what the batches share, in one transaction.
	before := db.state.batch
	err := db.record(b)
	if err == nil {
		db.limitGrowth(b)
		err = db.commitHook(b.snapshot.tx.Commit)
	}
	if err == nil {
		return nil
	}
	// 3. It failed: was it stored? Give the transaction up first, as far as bbolt
	// has not done that itself.
	if !rollback(b.snapshot.tx) {
		db.stuck = true
	}
	return db.judge(before, err)
}

// record writes counters and state into the batch's transaction.
func (db *DB) record(b *batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	if err := b.sums.flush(b.counters); err != nil {
		return err
	}
	db.state.batch++
	db.state.instant = db.clock.now()
	b.record = db.state.encode(b.record[:0])
	return b.snapshot.tx.Bucket(metaBucket).Put(stateKey, b.record)
}

// commitHook calls commit through the hook that tests may have set, and turns a
// panic of bbolt into an error.
func (db *DB) commitHook(commit func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	if db.options.Commit != nil {
		return db.options.Commit(commit)
	}
	return commit()
}

// limitGrowth sets how the file may grow in the commit of b.
func (db *DB) limitGrowth(b *batch) {
	size := int(db.size())
	// It grows in steps that suit its size: each costs a sync, but a small store
	// need not look like a large one.
	db.bolt.AllocSize = min(max(size/4, 256<<10), 16<<20)
	// A page whose counts and lengths are damaged can make bbolt copy the file
	// many times over into memory. A sound commit adds what it writes, half-filled
	// at worst, a path of pages to each key, and a list of free pages.
	const levels = 8
	paths := b.done * store.MaxOps * levels * db.bolt.Info().PageSize
	db.bolt.MaxSize = size + 4*b.bytes + paths + size/64 + 64<<20
}

// panicError is a panic of bbolt.
type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// judge decides what a failed commit means. before is the number of the last
// batch that is known to be stored.
//
// The rule. bbolt commits by overwriting one of two meta pages after everything
// else is synced, so the batch is stored if and only if that page is. The kernel
// answers our reads from the same pages that it will write to the disk. So if we
// read the old batch, the new meta page was never handed over, nothing can write
// it later, and the batch is not stored. If we read the new one it may reach the
// disk or not: unknown. After a failed sync we do not even trust what we read
// (https://wiki.postgresql.org/wiki/Fsync_Errors): unknown.
func (db *DB) judge(before uint64, cause error) error {
	if errors.Is(cause, bolterrors.ErrMaxSizeReached) {
		err := damaged("commit to the store; nothing was stored", cause)
		db.poison(err)
		return err
	}
	_, panicked := errors.AsType[panicError](cause)
	if !db.stuck && !panicked && !isSync(cause) {
		if stored, err := db.storedBatch(); err == nil && stored == before {
			// The number of the failed batch is free again: it names nothing.
			db.state.batch = before
			return notStored(cause)
		}
	}
	err := refusal.New(refusal.OutcomeUnknown,
		"commit to the store", "the last write failed, and may or may not be stored: "+cause.Error(),
		"look at the disk and the kernel's log, then start again: recovery decides what happened").Because(cause)
	db.poison(err)
	return err
}

// notStored is the refusal for a write of which nothing is stored.
func notStored(cause error) error {
	const doing = "commit to the store; nothing was stored"
	if isFull(cause) || growthRefused(cause) {
		return fullRefusal(doing, cause)
	}
	return refusal.New(refusal.Failed, doing, cause.Error(),
		"look at the disk and the kernel's log").Because(cause)
}

// storedBatch reads the number of the last batch from the file.
func (db *DB) storedBatch() (n uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		s, err := readState(tx)
		n = s.batch
		return err
	})
	return n, err
}

// readState returns the state record. Its errors are refusals without context.
func readState(tx *bbolt.Tx) (state, error) {
	b := tx.Bucket(metaBucket)
	if b == nil {
		return state{}, errBadRecord
	}
	return decodeState(b.Get(stateKey))
}

// markAhead moves the mark on when the numbers in use have reached it. On return
// the mark on disk covers every number given so far.
func (db *DB) markAhead() error {
	s, m := &db.state, db.mark
	if s.token <= m.token && s.sequence <= m.sequence {
		return nil
	}
	m.token = ahead(max(s.token, m.token))
	m.sequence = ahead(max(s.sequence, m.sequence))
	if err := writeMark(db.dir, m); err != nil {
		return fmt.Errorf("move the high-water mark: %w", err)
	}
	db.mark = m
	db.options.reached("mark moved")
	return nil
}

// ahead returns the mark that covers the block of numbers after n.
func ahead(n uint64) uint64 { return min(n+markBlock, maxNumber) }
