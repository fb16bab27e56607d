package mailbox

import (
	"context"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// What waits is read into the index block by block, as claims get there: a start
// reads marks only (see block.go). Nobody waits for a message while a block is unread
// that may have one for him, so that what becomes due there is not missed; and a
// message that becomes NEW in such a block is left to its reading.

// A reading is a block that is being read: it may have been looked at before, or
// after, what has become NEW since.
type reading struct {
	block block
	late  []readied // became NEW meanwhile
}

// before returns the first block of l that is unread and may have a message that comes
// before all of l.ids; ok is false where there is none.
func (x *index) before(l *level) (first block, ok bool) {
	for len(l.blocks) > 0 {
		first = l.blocks[0]
		if _, ok := x.unread[first]; ok {
			return first, len(l.ids.all) == 0 || first <= block(l.ids.all[0]>>x.bits)
		}
		l.blocks = l.blocks[1:]
	}
	l.blocks = nil
	return 0, false
}

// mayHave says that there may be messages of that actor and priority in a block that
// is unread.
func (x *index) mayHave(actor string, priority int, k block) {
	q := x.queue(actor)
	l := q.level(priority)
	if i, found := slices.BinarySearch(l.blocks, k); !found {
		l.blocks = slices.Insert(l.blocks, i, k)
		q.wake()
	}
}

// pushRead says that a message is NEW, wherever it lies.
func (x *index) pushRead(r readied, now time.Time) {
	k := block(r.id >> x.bits)
	if _, ok := x.unread[k]; !ok {
		x.pushLocked(r.to, r.id, r.priority, r.dueAt, now)
		return
	}
	// One that had ended when the block was marked has a mark that is newer than the
	// index.
	x.mayHave(r.to, r.priority, k)
	if x.reads != nil && x.reads.block == k {
		x.reads.late = append(x.reads.late, r)
	}
}

// begin says that a block is going to be read, and reports whether it is unread. It
// is called before the state is chosen that is read.
func (x *index) begin(k block) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.unread[k]; !ok {
		return false
	}
	x.reads = &reading{block: k}
	return true
}

// end brings what was found in the block that was being read into the index; after an
// error it stays unread.
func (x *index) end(found []readied, now time.Time, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	late := x.reads.late
	if err == nil {
		delete(x.unread, x.reads.block)
	}
	x.reads = nil
	if err != nil {
		return
	}
	for _, r := range late {
		x.pushLocked(r.to, r.id, r.priority, r.dueAt, now)
	}
	for _, r := range found {
		if !slices.ContainsFunc(late, func(l readied) bool { return l.id == r.id }) {
			x.pushLocked(r.to, r.id, r.priority, r.dueAt, now)
		}
	}
}

// readBlock reads the messages of a block into the index, if nobody has.
func (b *Box) readBlock(ctx context.Context, k block) error {
	b.reading.Lock()
	defer b.reading.Unlock()
	x := b.index
	if !x.begin(k) {
		return nil
	}
	now := b.wall()
	found := b.found[:0]
	// Who has come so far does not stop half way.
	err := b.store.View(context.WithoutCancel(ctx), func(r store.Reader) error {
		found = found[:0]
		b.scanBlock(r, k, b.actors.name, func(rec *record, id ID, err error) bool {
			switch {
			case err != nil:
				b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
			case rec.state == New && b.blockedTx(r, rec) == 0: // of a group only the first
				found = append(found, readied{rec.to, id, rec.priority, rec.dueAt})
			}
			return true
		})
		return nil
	})
	x.end(found, now, err)
	b.found = found[:0]
	return err
}

// loadBlocks enters the marks that r has into the index, as blocks that are unread.
func (b *Box) loadBlocks(r store.Reader) {
	x := b.index
	var last string
	name := func(to []byte) string {
		if string(to) != last {
			last = b.actors.name(to)
		}
		return last
	}
	var l *level
	var of mark
	r.Scan([]byte{spaceBlock, 1}, nil, func(key, _ []byte) bool {
		m, ok := parseMark(key, name)
		if !ok {
			b.log.Error("unreadable key left alone", "key", key)
			return true
		}
		if l == nil || m.actor != of.actor || m.priority != of.priority {
			l, of = x.queue(m.actor).level(m.priority), m
		}
		l.blocks = append(l.blocks, m.block) // in the order of the keys
		x.unread[m.block] = struct{}{}
		return true
	})
}
