package bolt

import (
	"errors"
	"fmt"

	"github.com/sovereign-run/sovereign/refusal"
)

// commit makes b visible, and durable unless all of it is asynchronous. After an error
// it has decided which of three things is true, and the error says so:
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
	// 2. All of the batch, and what the batches share, in one record of the log.
	before := db.state.batch
	db.state.batch++
	db.state.instant = db.clock.now()
	b.sums.flush(b.out.putCounter)
	state := db.state.encode(nil)
	b.out.table.states.put(b.at, stateKey, state, nil)
	b.release(db)
	err := db.append(b, state)
	if err == nil {
		b.out.keep()
		db.visible.Store(b.at)
		return nil
	}
	// 3. It failed: was it stored?
	if db.failure() == nil {
		// No. The number of the failed batch is free again: it names nothing.
		db.state.batch = before
	}
	return err
}

// append stores b, with the state record after it: in the log if it fits, else in
// mailbox.db.
func (db *DB) append(b *batch, state []byte) error {
	if int64(b.bytes) > db.limit/2 {
		return db.storeDirect(b)
	}
	b.record = encodeRecord(b.record[:0], state, &b.out)
	log := b.out.table.log
	if err := log.MakeReady(int64(len(b.record))); isFull(err) {
		// The other file may be larger, so let the next batch go there.
		db.cramped = true
		return db.storeDirect(b)
	} else if err != nil {
		return notStored(err)
	}
	write := log.Append
	if !b.durable {
		write = log.AppendUnsynced
	}
	err := db.commitHook(func() error { return write(b.at, b.record) })
	if err == nil {
		db.stats.logged.Add(uint64(len(b.record)))
		if b.durable {
			db.unsynced.there = false
		} else {
			db.leftUnsynced()
		}
		return nil
	}
	// The rule. A record is stored if and only if it is whole, and the kernel answers
	// our reads from the same pages that it will write to the disk. So if we do not
	// read it whole, it was never handed over whole, and nothing can store it later:
	// the next record takes its place. If we read it, it may reach the disk or not:
	// unknown. After a failed sync we do not even trust what we read
	// (https://wiki.postgresql.org/wiki/Fsync_Errors): unknown.
	if _, panicked := errors.AsType[panicError](err); !panicked && !isSync(err) {
		if there, e := log.Holds(b.at); e == nil && !there {
			return notStored(err)
		}
	}
	return db.unknown(err)
}

// unknown poisons the store because of cause, and returns the refusal.
func (db *DB) unknown(cause error) error {
	err := refusal.New(refusal.OutcomeUnknown,
		"commit to the store", "the last write failed, and may or may not be stored: "+cause.Error(),
		"look at the disk and the kernel's log, then start again: recovery decides what happened").Because(cause)
	db.poison(err)
	return err
}

// commitHook calls commit through the hook that tests may have set, and turns a
// panic into an error.
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

// panicError is a panic of bbolt.
type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// notStored is the refusal for a write of which nothing is stored.
func notStored(cause error) error {
	const doing = "commit to the store; nothing was stored"
	if isFull(cause) || growthRefused(cause) {
		return fullRefusal(doing, cause)
	}
	return refusal.New(refusal.Failed, doing, cause.Error(),
		"look at the disk and the kernel's log").Because(cause)
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

// hasRoom returns nil if updates that are not essential may be tried: while nothing
// that was confirmed waits for room in mailbox.db, and the reserve is held, can be
// taken again, or lies within that file as free pages.
func (db *DB) hasRoom() error {
	if db.stalled() {
		if !db.reserve.take() {
			return reserveUsed(db.dir)
		}
		if err := db.endRotation(); err != nil {
			return err
		}
	}
	if db.reserve.take() || int64(db.bolt.Stats().FreePageN)*int64(db.bolt.Info().PageSize) >= db.reserve.size {
		return nil
	}
	return reserveUsed(db.dir)
}
