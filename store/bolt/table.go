package bolt

import "github.com/sovereign-run/sovereign/store/wal"

// A table is what batches have written that is in the log and not, or not yet known
// to be, in mailbox.db. See index for who may do what at the same time.
type table struct {
	keys     *index
	counters *index    // values as in mailbox.db: 8 bytes, deleted at 0
	states   *index    // the state record, under stateKey
	slab     slab      // the leader's: what the keys and small values of both are cut from
	log      *wal.File // that its batches are in; nil: they were read back
	salt     uint64    // of that
	last     uint64    // its last batch, once it is frozen
}

func newTable(salt uint64, log *wal.File) *table {
	return &table{keys: newIndex(), counters: newIndex(), states: newIndex(), salt: salt, log: log}
}

// layers are the tables that lie over mailbox.db. They are never changed, but
// replaced: what is read of a transaction that began when these were current is
// right in them for good.
type layers struct {
	active *table // the newest
	frozen *table // what a checkpoint moves into mailbox.db; nil: nothing
}

// state returns the state record of batch, which is not in mailbox.db.
func (l *layers) state(batch uint64) ([]byte, bool) {
	for _, t := range []*table{l.active, l.frozen} {
		if t == nil {
			continue
		}
		if v := t.states.get(stateKey, batch); v != nil {
			return v.value, true
		}
	}
	return nil, false
}

// saltAfter returns the salt of the log file in which the batches after batch are.
func (l *layers) saltAfter(batch uint64) uint64 {
	if l.frozen != nil && batch < l.frozen.last {
		return l.frozen.salt
	}
	return l.active.salt
}

// written is what the batch in the making has written into the active table, each
// key once.
type written struct {
	table    *table
	batch    uint64
	keys     []*node
	counters []*node
}

func (w *written) begin(t *table, batch uint64) {
	w.table, w.batch = t, batch
}

// put makes value what key is after the batch. It keeps value, unless that is small,
// and not key.
func (w *written) put(key, value []byte) {
	if n := w.table.keys.put(w.batch, key, w.table.slab.small(value), &w.table.slab); n != nil {
		w.keys = append(w.keys, n)
	}
}

func (w *written) putCounter(name, value []byte) {
	if n := w.table.counters.put(w.batch, name, value, &w.table.slab); n != nil {
		w.counters = append(w.counters, n)
	}
}

// keep ends the batch: what it wrote stays.
func (w *written) keep() {
	clear(w.keys)
	clear(w.counters)
	w.keys, w.counters, w.table = w.keys[:0], w.counters[:0], nil
}

// undo takes back all that the batch has written.
func (w *written) undo() {
	if w.table == nil {
		return
	}
	for _, n := range w.keys {
		n.undo(w.batch)
	}
	for _, n := range w.counters {
		n.undo(w.batch)
	}
	if n := w.table.states.seek(stateKey); n != nil {
		n.undo(w.batch)
	}
	w.keep()
}
