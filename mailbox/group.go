package mailbox

import (
	"encoding/binary"

	"github.com/sovereign-run/sovereign/store"
)

// One message of a group (for each recipient) is worked on at a time, in send
// order: only the first of those that can still run is claimable, and it is not
// while one of the group is CLAIMED. A group's name lies in the record of each of
// its messages; which of them can run, and which one does, lies under spaceGroup,
// written by the transaction that changes a message's state. So nothing is
// scanned, and nothing is lost with a process.
//
// Of a group the index knows the one message that is claimable, at most. Whoever
// commits a change that makes another one claimable pushes it (moveTx tells which);
// an entry that is none any more is dropped by the claim that meets it.

// groupTx returns which message of a group is CLAIMED (0: none), and the first
// that is NEW, nil where there is none. The lock counts only as far as the record
// that it names bears it out, and unreadable records are passed over: damage to
// one message holds up no other.
func (b *Box) groupTx(r store.Reader, to, group string) (running ID, first *record) {
	if v := r.Get(groupKey(to, group)); len(v) == 8 {
		id := ID(binary.BigEndian.Uint64(v))
		if rec, err := b.get(r, id); err == nil && rec != nil && rec.state == Claimed {
			running = id
		}
	}
	r.Scan(groupMemberKey(to, group, 1), after(groupKey(to, group)), func(k, _ []byte) bool {
		if _, _, id, ok := parseGroupKey(k); ok && id != running {
			if rec, err := b.get(r, id); err == nil && rec != nil && rec.state == New {
				first = rec
				return false
			}
		}
		return true
	})
	return running, first
}

// claimableTx returns the one message of a group that may be claimed as far as its
// group goes, nil while one is worked on or none waits.
func (b *Box) claimableTx(r store.Reader, to, group string) *record {
	running, first := b.groupTx(r, to, group)
	if running != 0 {
		return nil
	}
	return first
}

// blockedTx returns the message that rec, which is NEW, has to wait for because of
// its group, 0 where it is its turn.
func (b *Box) blockedTx(r store.Reader, rec *record) ID {
	if rec.group == "" {
		return 0
	}
	switch running, first := b.groupTx(r, rec.to, rec.group); {
	case running != 0:
		return running
	case first != nil && first.id < rec.id:
		return first.id
	}
	return 0
}

// regroupTx writes what the move of rec between two states does to its group, and
// returns the message that has become claimable by it, nil for none. A state of 0
// is that of a message that does not exist.
func (b *Box) regroupTx(tx store.Tx, rec *record, from, to State, move func()) *record {
	was := b.claimableTx(tx, rec.to, rec.group)
	move()
	waits := func(s State) bool { return s == New || s == Claimed }
	switch {
	case waits(to) && !waits(from):
		tx.Put(groupMemberKey(rec.to, rec.group, rec.id), []byte{0})
	case waits(from) && !waits(to):
		tx.Delete(groupMemberKey(rec.to, rec.group, rec.id))
	}
	switch {
	case to == Claimed:
		tx.Put(groupKey(rec.to, rec.group), binary.BigEndian.AppendUint64(nil, uint64(rec.id)))
	case from == Claimed:
		tx.Delete(groupKey(rec.to, rec.group))
	}
	now := b.claimableTx(tx, rec.to, rec.group)
	if now == nil || was != nil && was.id == now.id {
		return nil
	}
	return now
}
