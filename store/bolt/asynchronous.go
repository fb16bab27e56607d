package bolt

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// syncDelay is for how long an asynchronous batch (see store.Tx) that no other batch
// follows stays unsynced in the log. A worker that settles at once does so sooner, and
// its commit syncs both.
const syncDelay = 10 * time.Millisecond

// syncAgain is when a sync is tried again that no batch could be begun for.
const syncAgain = time.Second

// An unsynced says of the log in use that something behind its last sync was answered.
type unsynced struct {
	there bool        // the leader's
	timed atomic.Bool // syncRest is to be called
}

// leftUnsynced is after an asynchronous batch.
func (db *DB) leftUnsynced() {
	db.unsynced.there = true
	switch delay := db.options.SyncDelay; {
	case delay > 0:
		db.syncWithin(delay)
	case delay == 0:
		db.syncWithin(syncDelay)
	}
}

// syncWithin has syncRest called within d, if it is not to come already.
func (db *DB) syncWithin(d time.Duration) {
	if db.unsynced.timed.CompareAndSwap(false, true) {
		time.AfterFunc(d, db.syncRest)
	}
}

// syncRest has a leader sync what no batch has yet. After an error that has poisoned the
// store nobody can, and once it is closed all is in mailbox.db. Any other one, a
// checkpoint that finds no room, came before the sync.
func (db *DB) syncRest() {
	db.unsynced.timed.Store(false) // first: what comes behind the batch of this has a timer of its own
	err := db.Update(store.Essential(context.Background()), func(store.Tx) error {
		db.batch.durable = true
		return nil
	})
	if err != nil && err != errClosed && db.failure() == nil {
		db.syncWithin(syncAgain)
	}
}

// sync makes all that is in the log durable. After an error the store is poisoned.
func (db *DB) sync() error {
	if !db.unsynced.there {
		return nil
	}
	if err := db.commitHook(db.layers.Load().active.log.Sync); err != nil {
		return db.unknown(err)
	}
	db.unsynced.there = false
	return nil
}
