package bolt

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
)

// batch is one commit in the making: the leader's own, and reused by the next. What
// its functions write goes into the active table at once, as versions that nobody
// else sees before the batch is committed.
type batch struct {
	snapshot
	tx      tx
	sums    sums
	recent  recent
	out     written
	changed bool
	durable bool // it is to be durable when it is answered: not all that changed it is asynchronous
	shared  bool // it had more than one call; kept for the next
	bytes   int  // keys and values that its functions wrote
	done    int  // functions that succeeded
	record  []byte
}

// yields is how often a leader lets others run before it drains the queue. More
// than three gained nothing more in BenchmarkLifecycle.
const yields = 3

// lead runs and commits everything that waits, until nobody does or another
// caller has taken the lead. It returns when own is answered.
func (db *DB) lead(own *call) {
	// The callers that the commit before has just answered are runnable now, and
	// many of them come back at once. Letting them run first makes commits fewer. Where
	// it had but one, nobody else does, and yielding would wake a thread that looks for
	// what to run.
	if db.batch.shared || db.group.waiting() > 1 {
		for range yields {
			runtime.Gosched()
		}
	}
	calls := db.group.take()
	db.batch.shared = len(calls) > 1
	returned := false
	defer func() {
		if !returned {
			// A function called runtime.Goexit, which no defer can stop. Nothing
			// of this batch is stored; the others run again on another goroutine,
			// so that only its own caller goes down with it.
			var again, gone []*call
			for _, c := range calls {
				switch {
				case c == own:
				case c.exit:
					gone = append(gone, c)
				default:
					again = append(again, c)
				}
			}
			go func() {
				db.runBatch(again)
				db.group.hand(append(again, gone...), nil)
			}()
		}
	}()
	db.runBatch(calls)
	returned = true
	db.group.hand(calls, own)
}

// runBatch runs the functions of calls one after another in one transaction,
// commits it, and leaves an answer in each call. On a full disk the essential ones
// are tried once more, by themselves and with the reserve.
func (db *DB) runBatch(calls []*call) {
	if err := db.failure(); err != nil {
		answer(calls, err)
		return
	}
	fault := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(fault)

	essential, others := split(calls)
	if len(others) > 0 {
		if err := db.hasRoom(); err != nil {
			db.fullness.learn(err, false)
			answer(others, err)
			calls, others = essential, nil
		}
	}
	before := db.stats.commits.Load()
	err := db.runOnce(calls)
	if len(others) > 0 {
		db.fullness.learn(err, db.stats.commits.Load() > before)
	}
	if refusal.Has(err, refusal.DiskFull) && len(essential) > 0 {
		answer(others, err)
		// Without the others it may fit, with the reserve it should. Who has failed
		// for a reason of its own has its answer.
		if released := db.reserve.release(); released || len(others) > 0 {
			calls = slices.DeleteFunc(essential, func(c *call) bool { return c.err != nil && !c.behind || c.panic != nil })
			err = db.runOnce(calls)
		}
	}
	answer(calls, err)
}

// split parts the essential calls from the others.
func split(calls []*call) (essential, others []*call) {
	for _, c := range calls {
		if c.essential {
			essential = append(essential, c)
		} else {
			others = append(others, c)
		}
	}
	return essential, others
}

// runOnce runs the functions of calls in one transaction and commits it. The error
// is for those that have none of their own.
func (db *DB) runOnce(calls []*call) error {
	if err := db.makeRoom(); err != nil {
		return err
	}
	b := &db.batch
	defer b.end(db)
	if err := b.begin(db); err != nil {
		return err
	}
	for _, c := range calls {
		c.behind = b.changed
		b.runCall(db, c)
		if err := b.apply(db, c); err != nil {
			// The store itself is damaged, and the batch is given up whole.
			db.poison(err)
			return err
		}
	}
	switch {
	case !b.changed && b.durable:
		return db.sync()
	case !b.changed:
		return nil
	}
	began := time.Now()
	if err := db.commit(b); err != nil {
		return err
	}
	db.stats.times.count(time.Since(began).Seconds(), &timeBounds)
	db.stats.sizes.count(float64(b.done), &sizeBounds)
	db.stats.commits.Add(1)
	db.stats.functions.Add(uint64(b.done))
	db.stats.bytes.Add(uint64(b.bytes))
	return nil
}

// answer gives err to every call that has not failed by itself. One that ran behind a
// writer may have refused for what was then not stored: it did not fail by itself.
func answer(calls []*call, err error) {
	if err == nil {
		return
	}
	for _, c := range calls {
		if (c.err == nil || c.behind) && c.panic == nil {
			c.err = err
		}
	}
}

func (b *batch) begin(db *DB) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("begin a transaction", p)
		}
	}()
	if err := db.begin(&b.snapshot); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	b.snapshot.recent = &b.recent
	b.at = db.state.batch + 1
	b.out.begin(b.layers.active, b.at)
	return nil
}

// end releases what begin took, committed or not.
func (b *batch) end(db *DB) {
	b.out.undo()
	b.release(db)
	b.snapshot.reset()
	b.tx.overlay.reset()
	b.sums.reset()
	b.changed, b.durable, b.bytes, b.done = false, false, 0, 0
}

// release ends the transaction that the functions read.
func (b *batch) release(db *DB) {
	if b.snapshot.tx != nil && !rollback(b.snapshot.tx) {
		db.giveUpBolt()
	}
	b.snapshot.tx = nil
}

// rollback gives tx up; after a commit it does nothing. It reports false if
// bbolt panicked, and may hold its locks for ever. What is on disk is the same.
func rollback(tx *bbolt.Tx) (ok bool) {
	defer func() { ok = recover() == nil }()
	_ = tx.Rollback()
	return true
}

// runCall runs the function of c over an overlay of its own.
func (b *batch) runCall(db *DB, c *call) {
	t := &b.tx
	t.reader = reader{snapshot: &b.snapshot}
	t.state, t.sums, t.out, t.dirty, t.async = &db.state, &b.sums, &b.out, false, false
	c.exit = true
	defer func() {
		if c.exit {
			if p := recover(); p != nil {
				c.exit = false
				if isFault(p) {
					// It read a value on a page that is not there.
					c.err = damaged("read the store", p)
				} else {
					c.panic = p
				}
			}
		}
	}()
	c.err = c.fn(t)
	c.exit = false
	if t.err != nil {
		// Errors of the engine count, whatever the function made of them.
		c.err = t.err
	}
}

// apply makes what c's function wrote part of the batch, if it succeeded. An
// error means that the whole transaction is broken.
func (b *batch) apply(db *DB, c *call) (err error) {
	t := &b.tx
	defer t.overlay.reset()
	if c.err != nil || c.panic != nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = damaged("write the store", p)
		}
	}()
	for _, a := range t.adds {
		b.sums.add(b.stored, a)
	}
	for _, w := range t.writes {
		b.out.put(w.key, w.value)
	}
	b.bytes += t.bytes
	if t.dirty || len(t.writes) > 0 || len(t.adds) > 0 {
		b.changed = true
		b.durable = b.durable || !t.async
	}
	b.done++
	return nil
}

// stored returns the value of a counter before the batch. It panics where that is
// damaged.
func (b *batch) stored(counter []byte) int64 {
	r := reader{snapshot: &b.snapshot}
	v := r.sum(counter)
	if r.err != nil {
		panic(r.err)
	}
	return v
}
