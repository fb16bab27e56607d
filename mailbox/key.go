package mailbox

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// The spaces of the mailbox: the first byte of every key, drawn in
// docs/storage.md. Numbers are big-endian, so that keys sort in send order:
// new messages are appended at the end and ended ones leave at the front.
const (
	spaceActor   = 'a' // a NAME                      → actor, JSON
	spaceContent = 'b' // b ID                        → content: immutable
	spaceResult  = 'd' // d ID                        → result
	spaceEvent   = 'e' // e SEQ                       → event
	spacePurge   = 'f' // f PURGE-AT ID               → state and recipient: ended messages by when they may go; or 0 and the spaceKey of one that is gone
	spaceGroup   = 'h' // h ACTOR 0 SIZE(2) GROUP      → the message of the group that is CLAIMED; with ID behind: nothing, its messages that can run
	spaceLapse   = 't' // t LAPSES-AT ID              → nothing: NEW messages by when their time to live is over
	spaceKey     = 'k' // k ACTOR 0 KEY               → idempotency key
	spaceOpen    = 'o' // o ID                        → record: NEW, CLAIMED, staged
	spaceEpoch   = 'g' // g                           → epoch that claims were last parked for
	spacePending = 'p' // p PARENT TOKEN              → staged sends still to be made visible or removed
	spaceReceipt = 'r' // r ID ATTEMPT                → receipt
	spaceStaged  = 's' // s PARENT TOKEN ID           → nothing: the staged sends of a claim
	spaceBlock   = 'q' // q 0 BLOCK, q ACTOR 0 PRIORITY BLOCK → nothing: what may lie in a block; q: the size of blocks
	spaceClosed  = 'z' // z ID                        → record: DONE, DEAD, PARKED
	spaceCount   = 'n' // n ACTOR 0 STATE             → counter
)

// A key maker that is a method of a stock cuts the key from it. The function of the same
// name is for who has none: it makes an object.

func idKey(space byte, id ID) []byte { return (*stock)(nil).idKey(space, id) }

func (s *stock) idKey(space byte, id ID) []byte {
	return s.close(binary.BigEndian.AppendUint64(append(s.open(9), space), uint64(id)))
}

// putIDKey makes the key within an array of the caller's.
func putIDKey(k *[9]byte, space byte, id ID) []byte {
	k[0] = space
	binary.BigEndian.PutUint64(k[1:], uint64(id))
	return k[:]
}

func (s *stock) receiptKey(id ID, attempt int) []byte {
	k := binary.BigEndian.AppendUint64(append(s.open(13), spaceReceipt), uint64(id))
	return s.close(binary.BigEndian.AppendUint32(k, uint32(attempt)))
}

// claimKey is the key of a claim in spacePending, and the prefix of its staged
// sends in spaceStaged.
func claimKey(space byte, ref Ref) []byte {
	return appendClaimKey(make([]byte, 0, 17), space, ref)
}

func appendClaimKey(k []byte, space byte, ref Ref) []byte {
	k = binary.BigEndian.AppendUint64(append(k, space), uint64(ref.ID))
	return binary.BigEndian.AppendUint64(k, uint64(ref.Token))
}

func stagedKey(parent Ref, id ID) []byte { return (*stock)(nil).stagedKey(parent, id) }

func (s *stock) stagedKey(parent Ref, id ID) []byte {
	return s.close(binary.BigEndian.AppendUint64(appendClaimKey(s.open(25), spaceStaged, parent), uint64(id)))
}

// purgeKey sorts ended messages by when they may go: nanoseconds since 1970.
func purgeKey(at time.Time, id ID) []byte { return (*stock)(nil).purgeKey(at, id) }

func (s *stock) purgeKey(at time.Time, id ID) []byte {
	k := binary.BigEndian.AppendUint64(append(s.open(17), spacePurge), uint64(at.UnixNano()))
	return s.close(binary.BigEndian.AppendUint64(k, uint64(id)))
}

// parseDueKey reads a key of spacePurge or spaceLapse.
func parseDueKey(key []byte) (at time.Time, id ID, ok bool) {
	if len(key) != 17 {
		return time.Time{}, 0, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(key[1:]))).UTC(), ID(binary.BigEndian.Uint64(key[9:])), true
}

// lapseKey sorts NEW messages by when their time to live is over.
func lapseKey(at time.Time, id ID) []byte {
	k := purgeKey(at, id)
	k[0] = spaceLapse
	return k
}

// groupKey is the key of a group's lock, and the prefix of its messages: actor
// names hold no zero byte, and the size says where the group's name ends.
func groupKey(actor, group string) []byte {
	k := make([]byte, 0, len(actor)+len(group)+12)
	k = append(k, spaceGroup)
	k = append(k, actor...)
	k = binary.BigEndian.AppendUint16(append(k, 0), uint16(len(group)))
	return append(k, group...)
}

func groupMemberKey(actor, group string, id ID) []byte {
	return binary.BigEndian.AppendUint64(groupKey(actor, group), uint64(id))
}

// parseGroupKey reads either kind; id is 0 in that of the lock.
func parseGroupKey(key []byte) (actor, group string, id ID, ok bool) {
	end := bytes.IndexByte(key, 0)
	if end < 1 || len(key) < end+3 {
		return "", "", 0, false
	}
	rest := key[end+3:]
	size := int(binary.BigEndian.Uint16(key[end+1:]))
	switch len(rest) - size {
	case 8:
		id = ID(binary.BigEndian.Uint64(rest[size:]))
		ok = id != 0
	case 0:
		ok = true
	}
	if !ok || size == 0 {
		return "", "", 0, false
	}
	return string(key[1:end]), string(rest[:size]), id, true
}

func actorKey(name string) []byte { return append([]byte{spaceActor}, name...) }

// dedupKey: actor names hold no zero byte, so the first one ends the name.
func dedupKey(actor, key string) []byte {
	k := make([]byte, 0, len(actor)+len(key)+2)
	k = append(k, spaceKey)
	k = append(k, actor...)
	k = append(k, 0)
	return append(k, key...)
}

func countKey(actor string, of State) []byte { return (*stock)(nil).countKey(actor, of) }

func (s *stock) countKey(actor string, of State) []byte {
	k := s.open(len(actor) + 3)
	k = append(k, spaceCount)
	k = append(k, actor...)
	return s.close(append(k, 0, byte(of)))
}

// parseIDKey reads the id at the front of a key of one of the id-first spaces.
func parseIDKey(key []byte) (ID, bool) {
	if len(key) < 9 {
		return 0, false
	}
	return ID(binary.BigEndian.Uint64(key[1:])), true
}

func parseClaimKey(key []byte) (Ref, bool) {
	if len(key) < 17 {
		return Ref{}, false
	}
	return Ref{ID: ID(binary.BigEndian.Uint64(key[1:])), Token: fence.Token(binary.BigEndian.Uint64(key[9:]))}, true
}

func parseStagedKey(key []byte) (parent Ref, id ID, ok bool) {
	if len(key) != 25 {
		return Ref{}, 0, false
	}
	parent, _ = parseClaimKey(key)
	return parent, ID(binary.BigEndian.Uint64(key[17:])), true
}

func parseReceiptKey(key []byte) (id ID, attempt int, ok bool) {
	if len(key) != 13 {
		return 0, 0, false
	}
	return ID(binary.BigEndian.Uint64(key[1:])), int(binary.BigEndian.Uint32(key[9:])), true
}

func parseCountKey(key []byte) (actor string, s State, ok bool) {
	if len(key) < 3 || key[0] != spaceCount || key[len(key)-2] != 0 {
		return "", 0, false
	}
	return string(key[1 : len(key)-2]), State(key[len(key)-1]), true
}

// after returns the first key behind all that start with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
