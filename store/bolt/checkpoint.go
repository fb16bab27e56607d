package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/sovereign-run/sovereign/refusal"
)

// moves is who may write mailbox.db: one at a time.
type moves struct {
	mu     sync.Mutex
	stored uint64 // the batch that mailbox.db holds the state of
	salt   uint64 // of the log file that it names; 0: none
}

// directBatch is the last batch that was moved into mailbox.db, by transaction tx of
// bbolt.
type directBatch struct {
	tx    int
	batch uint64
}

// move moves all batches up to goal into mailbox.db; end says that no log is in use
// from then on. Where there is no room for all at once it goes in steps, since the
// pages that one step gives up serve the next. After an error mailbox.db holds the
// state of an earlier batch, and the log has all behind it; or the store is poisoned.
func (db *DB) move(goal uint64, end bool, hook func(func() error) error) error {
	db.moves.mu.Lock()
	defer db.moves.mu.Unlock()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	step := max(goal, db.moves.stored+1) - db.moves.stored
	for {
		goal = max(goal, db.moves.stored)
		if err := db.failure(); err != nil {
			return err
		}
		salt := uint64(0)
		if !end {
			salt = db.layers.Load().saltAfter(goal)
		}
		if db.moves.stored == goal && db.moves.salt == salt {
			return nil
		}
		to := min(db.moves.stored+step, goal)
		err := db.moveOnce(to, end && to == goal, hook)
		switch {
		case err == nil:
		case refusal.Has(err, refusal.DiskFull) && step > 1:
			step /= 2
		default:
			return err
		}
	}
}

// moveOnce moves all batches up to one into mailbox.db in one transaction.
func (db *DB) moveOnce(to uint64, end bool, hook func(func() error) error) error {
	const doing = "move the log into " + DataFile
	l := db.layers.Load()
	salt := l.saltAfter(to)
	if end {
		salt = 0
	}
	// 1. One transaction. A crash after it leaves a log whose records up to this one
	// are passed over.
	tx, err := db.beginMove()
	if err != nil {
		return err
	}
	entries, bytes, err := db.write(tx, l, to, salt)
	if err != nil {
		if !rollback(tx) {
			db.giveUpBolt()
		}
		// Keys and sizes were checked, so it is the file that is wrong.
		err = damaged(doing, err)
		db.poison(err)
		return err
	}
	db.limitGrowth(entries, bytes)
	db.direct.Store(&directBatch{tx.ID(), to})
	err = hook(tx.Commit)
	if err == nil {
		db.moves.stored, db.moves.salt = to, salt
		db.stats.moves.Add(1)
		db.options.reached("log moved")
		return nil
	}
	// 2. It failed: was it stored? Give the transaction up first, as far as bbolt
	// has not done that itself.
	if !rollback(tx) {
		db.stuck.Store(true)
	}
	return db.judge(db.moves.stored, err)
}

func (db *DB) beginMove() (tx *bbolt.Tx, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("begin a transaction", p)
		}
	}()
	return db.bolt.Begin(true)
}

// write writes what the tables say after the batch to into tx, with a state record
// that names the log file with that salt.
func (db *DB) write(tx *bbolt.Tx, l *layers, to, salt uint64) (entries, bytes int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError{p}
		}
	}()
	s, err := readState(tx)
	if record, ok := l.state(to); ok {
		s, err = decodeState(record)
	}
	if err == nil && s.batch != to {
		err = fmt.Errorf("the state is that of batch %d, not %d", s.batch, to)
	}
	if err != nil {
		return 0, 0, err
	}
	s.log = salt
	if err := tx.Bucket(metaBucket).Put(stateKey, s.encode(nil)); err != nil {
		return 0, 0, err
	}
	counters := tx.Bucket(countersName)
	for _, t := range []*table{l.frozen, l.active} { // what is newer is written over
		if t == nil {
			continue
		}
		err := t.counters.since(db.moves.stored, to, func(name, value []byte) error {
			entries++
			bytes += len(name) + len(value)
			return putOrDelete(counters, name, value)
		})
		if err != nil {
			return 0, 0, err
		}
		var bucket *bbolt.Bucket
		var deleter *bbolt.Cursor // it keeps the room for its path
		var last string           // the bucket's last key before t
		space := -1
		err = t.keys.since(db.moves.stored, to, func(key, value []byte) (err error) {
			if int(key[0]) != space || bucket == nil {
				space, bucket, last = int(key[0]), tx.Bucket(key[:1]), ""
				if bucket != nil {
					deleter = bucket.Cursor()
					k, _ := deleter.Last()
					last = string(k)
				}
			}
			if value == nil && string(key) > last {
				return nil // it came and went within the log
			}
			entries++
			bytes += len(key) + len(value)
			if bucket == nil {
				if bucket, err = tx.CreateBucket(key[:1]); err != nil {
					return err
				}
			}
			bucket.FillPercent = db.fill[space]
			if value != nil {
				return bucket.Put(key, value)
			}
			if k, _ := deleter.Seek(key); string(k) == string(key) {
				return deleter.Delete()
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return entries, bytes, nil
}

func putOrDelete(b *bbolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

// limitGrowth sets how the file may grow in a transaction that writes so many
// entries of so many bytes.
func (db *DB) limitGrowth(entries, bytes int) {
	size := int(db.size())
	// It grows in steps that suit its size: each costs a sync, but a small store
	// need not look like a large one.
	db.bolt.AllocSize = min(max(size/4, 256<<10), 16<<20)
	// A page whose counts and lengths are damaged can make bbolt copy the file
	// many times over into memory. A sound commit adds what it writes, half-filled
	// at worst, a path of pages to each key (and each page once), and a list of free
	// pages.
	const levels = 8
	paths := min(entries*levels*db.bolt.Info().PageSize, size)
	db.bolt.MaxSize = size + 4*bytes + paths + size/64 + 64<<20
}

// judge decides what a failed commit of bbolt means. before is the number of the
// last batch that is known to be in mailbox.db.
//
// The rule. bbolt commits by overwriting one of two meta pages after everything
// else is synced, so the batch is stored if and only if that page is. The kernel
// answers our reads from the same pages that it will write to the disk. So if we
// read the old batch, the new meta page was never handed over, nothing can write
// it later, and the batch is not stored. If we read the new one it may reach the
// disk or not: unknown. After a failed sync we do not even trust what we read.
func (db *DB) judge(before uint64, cause error) error {
	if errors.Is(cause, bolterrors.ErrMaxSizeReached) {
		err := damaged("commit to the store; nothing was stored", cause)
		db.poison(err)
		return err
	}
	_, panicked := errors.AsType[panicError](cause)
	if !db.stuck.Load() && !panicked && !isSync(cause) {
		if stored, err := db.storedBatch(); err == nil && stored == before {
			return notStored(cause)
		}
	}
	return db.unknown(cause)
}

// giveUpBolt poisons a store whose bbolt may hold its locks for ever.
func (db *DB) giveUpBolt() {
	db.stuck.Store(true)
	db.poison(damaged("give up a transaction", "the list of free pages is inconsistent"))
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
