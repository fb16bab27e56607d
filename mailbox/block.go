package mailbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/store"
)

// A block is the messages whose ids are the same but for their last bits. Marks say
// what may lie in one, so that a start reads only what it needs first: where claims
// are to be recovered, and which blocks to read, in which order, for the messages of
// an actor. Two rules make them complete; each is kept by the transaction that writes
// the record:
//
//   - whoever writes a CLAIMED record marks its block as one with claims;
//   - whoever writes an open record where there was none marks its block for the
//     recipient and the priority, which do not change.
//
// A mark too many costs a look at a start, and is removed some time after the last
// message that it stood for has ended (see tidyBlocks). There is one write for each
// thousand messages or so of an actor, whatever else they are.
//
// A store that was written before there were blocks is marked by Load; blocksKey says
// that this was done, and how large blocks are.

// A block is an id without its last bits.
type block uint64

// blockBits is the number of those bits. To read a block takes less than a
// millisecond, and a million messages have a thousand marks.
const blockBits = 10

func (b *Box) blockOf(id ID) block { return block(id >> b.index.bits) }

// blockBounds are the first id of a block and the one behind its last.
func (b *Box) blockBounds(k block) (from, to ID) {
	return ID(k) << b.index.bits, ID(k+1) << b.index.bits
}

// blocksKey holds the size of blocks once every one is marked.
var blocksKey = []byte{spaceBlock}

// claimsMark is the key that says that a block may have claims. No actor's name is
// empty, so that these come before those of openMark.
func (s *stock) claimsMark(k block) []byte {
	return s.close(binary.BigEndian.AppendUint64(append(s.open(10), spaceBlock, 0), uint64(k)))
}

// openMark is the key that says that a block may have open messages of an actor with
// that priority. An actor's marks sort as its messages are claimed.
func (s *stock) openMark(actor string, priority int, k block) []byte {
	key := s.open(len(actor) + 11)
	key = append(key, spaceBlock)
	key = append(key, actor...)
	key = append(key, 0, byte(maxPriority-priority))
	return s.close(binary.BigEndian.AppendUint64(key, uint64(k)))
}

// A mark is a key of spaceBlock.
type mark struct {
	actor    string // "": of claims
	priority int
	block    block
}

func (m mark) key() []byte {
	var s stock
	if m.actor == "" {
		return s.claimsMark(m.block)
	}
	return s.openMark(m.actor, m.priority, m.block)
}

// parseMark reads the key of a mark. The actor's name is made by name.
func parseMark(key []byte, name func([]byte) string) (m mark, ok bool) {
	end := bytes.IndexByte(key, 0)
	switch {
	case end == 1 && len(key) == 10:
		return mark{block: block(binary.BigEndian.Uint64(key[2:]))}, true
	case end > 1 && len(key) == end+10 && key[end+1] <= maxPriority-minPriority:
		return mark{actor: name(key[1:end]), priority: maxPriority - int(key[end+1]), block: block(binary.BigEndian.Uint64(key[end+2:]))}, true
	}
	return mark{}, false
}

// markTx marks a block, if it is not.
func markTx(tx store.Tx, key []byte) {
	if tx.Get(key) == nil {
		tx.Put(key, []byte{0})
	}
}

// markOpenTx marks the block of a message of which an open record is written.
func (b *Box) markOpenTx(tx store.Tx, rec *record) {
	markTx(tx, rec.stock.openMark(rec.to, rec.priority, b.blockOf(rec.id)))
}

// markClaimTx marks the block of a message that is claimed.
func (b *Box) markClaimTx(tx store.Tx, rec *record) {
	markTx(tx, rec.stock.claimsMark(b.blockOf(rec.id)))
}

// marked reports whether every block of the store is marked, as this box cuts them.
func (b *Box) marked(r store.Reader) bool {
	v := r.Get(blocksKey)
	return len(v) == 1 && v[0] == b.index.bits
}

// scanBlock is scanOpen of a block.
func (b *Box) scanBlock(r store.Reader, k block, name func([]byte) string, fn func(rec *record, id ID, err error) bool) {
	from, to := b.blockBounds(k)
	b.scanOpen(r, idKey(spaceOpen, from), idKey(spaceOpen, to), name, fn)
}

// scanOpen gives the open records whose keys are from one up to before another (nil: the
// last) to fn, in id order, until it returns false. What cannot be read is given with an
// error. One record serves for all: fn copies what it keeps.
func (b *Box) scanOpen(r store.Reader, from, to []byte, name func([]byte) string, fn func(rec *record, id ID, err error) bool) {
	var rec record
	r.Scan(from, to, func(key, v []byte) bool {
		id, ok := parseIDKey(key)
		if !ok {
			b.log.Error("unreadable key left alone", "key", key)
			return true
		}
		err := rec.decode(id, v, name)
		return fn(&rec, id, err)
	})
}

// scanClaims gives every record that is CLAIMED to fn, in id order. It reads the blocks
// that are marked as having claims, or all open records where that is not known.
func (b *Box) scanClaims(r store.Reader, fn func(*record)) {
	one := func(rec *record, id ID, err error) bool {
		switch {
		case err != nil:
			b.log.Error("unreadable message left alone", "msg", id.String(), "err", err)
		case rec.state == Claimed:
			claimed := *rec
			fn(&claimed)
		}
		return true
	}
	if !b.marked(r) {
		b.scanOpen(r, []byte{spaceOpen}, nil, b.actors.name, one)
		return
	}
	r.Scan([]byte{spaceBlock, 0}, []byte{spaceBlock, 1}, func(key, _ []byte) bool {
		if m, ok := parseMark(key, b.actors.name); ok {
			b.scanBlock(r, m.block, b.actors.name, one)
		}
		return true
	})
}

// markStep bounds the marks written or removed by one transaction.
const markStep = 64

// markBlocks marks every block, once: of a store that was written before there were
// any, or by a version that cut them otherwise. It may be repeated, and may run beside
// others that send.
func (b *Box) markBlocks(ctx context.Context) error {
	ctx = store.Essential(ctx)
	var missing [][]byte
	done := false
	err := b.store.View(ctx, func(r store.Reader) error {
		if done = b.marked(r); done {
			return nil
		}
		wanted := map[string]struct{}{}
		want := func(m mark) {
			if key := m.key(); r.Get(key) == nil {
				wanted[string(key)] = struct{}{}
			}
		}
		var last mark
		b.scanOpen(r, []byte{spaceOpen}, nil, b.actors.name, func(rec *record, id ID, err error) bool {
			if err != nil {
				return true // left alone, and logged where it is read
			}
			if m := (mark{rec.to, rec.priority, b.blockOf(id)}); m != last {
				want(m)
				last = m
			}
			if rec.state == Claimed {
				want(mark{block: b.blockOf(id)})
			}
			return true
		})
		missing = missing[:0]
		for key := range wanted {
			missing = append(missing, []byte(key))
		}
		return nil
	})
	if err != nil || done {
		return err
	}
	slices.SortFunc(missing, bytes.Compare)
	for step := range slices.Chunk(missing, markStep) {
		err = b.store.Update(ctx, func(tx store.Tx) error {
			for _, key := range step {
				tx.Put(key, []byte{0})
			}
			return nil
		})
		if err != nil {
			break
		}
	}
	if err == nil {
		// The last, so that a crash before it has all of it done again.
		err = b.store.Update(ctx, func(tx store.Tx) error {
			tx.Put(blocksKey, []byte{b.index.bits})
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("mark the blocks of the store: %w", err)
	}
	return nil
}

// bears reports whether m stands for a message: one that cannot be read may be one.
func (b *Box) bears(r store.Reader, m mark) (found bool) {
	b.scanBlock(r, m.block, b.actors.name, func(rec *record, _ ID, err error) bool {
		found = err != nil || m.actor == "" && rec.state == Claimed || m.actor != "" && rec.to == m.actor && rec.priority == m.priority
		return !found
	})
	return found
}
