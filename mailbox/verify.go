package mailbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/store"
)

// A Problem is one finding of Verify.
type Problem struct {
	Where string // the record
	What  string // what is wrong with it
}

// verifyStep bounds the records read within one snapshot.
const verifyStep = 2048

// Verify reads every record and tells found of everything that is damaged or
// contradicts another record: content without record and the reverse, a claim
// without token or expiry, receipts that are not one per start (P4.4), staged
// sends without their index entry and the reverse, keys that cannot be read, counts that do not equal what they count. It changes nothing, and
// returns the number of messages. On a store in use a message that changes
// between two steps may be reported wrongly; a stopped store has no such.
func (b *Box) Verify(ctx context.Context, found func(Problem)) (messages int64, err error) {
	counted := map[string]int64{}
	problem := func(where, format string, args ...any) {
		found(Problem{Where: where, What: fmt.Sprintf(format, args...)})
	}
	check := func(space byte, each func(r store.Reader, k, v []byte)) error {
		from := []byte{space}
		for from != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := b.store.View(ctx, func(r store.Reader) error {
				n := 0
				next := []byte(nil)
				r.Scan(from, nil, func(k, v []byte) bool {
					if n == verifyStep {
						next = append([]byte(nil), k...)
						return false
					}
					n++
					each(r, k, v)
					return true
				})
				from = next
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}

	record := func(open bool) func(r store.Reader, k, v []byte) {
		return func(r store.Reader, k, v []byte) {
			id, ok := parseIDKey(k)
			if !ok || len(k) != 9 {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			messages++
			rec, err := decodeRecord(id, v, nil)
			if err != nil {
				problem(id.String(), "%v", err)
				return
			}
			counted[string(countKey(rec.to, rec.state))]++
			if rec.open() != open {
				problem(id.String(), "it is %s and lies with the wrong records", rec.state)
			}
			if !rec.purgeAt.IsZero() && r.Get(purgeKey(rec.purgeAt, id)) == nil {
				problem(id.String(), "it is to be removed at %s and the index does not say so", rec.purgeAt.Format(time.RFC3339))
			}
			if open && r.Get(idKey(spaceClosed, id)) != nil {
				problem(id.String(), "it has two records")
			}
			if r.Get(idKey(spaceContent, id)) == nil {
				problem(id.String(), "its content is missing")
			}
			if rec.state == staged && r.Get(stagedKey(rec.parent, id)) == nil {
				problem(id.String(), "it is staged under %s and the index does not say so", rec.parent.ID)
			}
			if rec.state == New && !rec.lapsesAt.IsZero() && r.Get(lapseKey(rec.lapsesAt, id)) == nil {
				problem(id.String(), "its time to live is over at %s and the index does not say so", rec.lapsesAt.Format(time.RFC3339))
			}
			if rec.group != "" && (rec.state == New || rec.state == Claimed) {
				b.verifyGroup(r, rec, problem)
			}
			if rec.state == Claimed && rec.claim.token != rec.last {
				problem(id.String(), "its claim's token %d is not its last one, %d", rec.claim.token, rec.last)
			}
			b.verifyReceipts(r, rec, problem)
		}
	}
	steps := []struct {
		space byte
		each  func(r store.Reader, k, v []byte)
	}{
		{spaceOpen, record(true)},
		{spaceClosed, record(false)},
		{spaceContent, func(r store.Reader, k, v []byte) {
			id, _ := parseIDKey(k)
			if _, err := decodeContent(id, v); err != nil {
				problem(id.String(), "%v", err)
			}
			b.verifyOwner(r, id, "content", problem)
		}},
		{spaceReceipt, func(r store.Reader, k, v []byte) {
			id, attempt, ok := parseReceiptKey(k)
			if !ok {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			if _, err := decodeReceipt(id, attempt, v); err != nil {
				problem(id.String(), "%v", err)
			}
			if r.Get(claimKey(spacePending, Ref{ID: id})) == nil {
				b.verifyOwner(r, id, "a receipt", problem)
			}
		}},
		{spaceResult, func(r store.Reader, k, v []byte) {
			id, _ := parseIDKey(k)
			if _, _, err := decodeResult(id, v); err != nil {
				problem(id.String(), "%v", err)
			}
			b.verifyOwner(r, id, "a result", problem)
		}},
		{spaceStaged, func(r store.Reader, k, _ []byte) {
			parent, id, ok := parseStagedKey(k)
			if !ok {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			if rec, err := b.get(r, id); err == nil && (rec == nil || rec.state != staged || rec.parent != parent) {
				problem(id.String(), "the index calls it staged under %s, its record does not", parent.ID)
			}
		}},
		{spacePurge, func(r store.Reader, k, _ []byte) {
			at, id, ok := parsePurgeKey(k)
			if !ok {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			if rec, err := b.get(r, id); err == nil && (rec == nil || !rec.purgeAt.Equal(at)) {
				problem(id.String(), "the index says that it is to be removed at %s, its record does not", at.Format(time.RFC3339))
			}
		}},
		{spaceLapse, func(r store.Reader, k, _ []byte) {
			at, id, ok := parsePurgeKey(k)
			if !ok {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			if rec, err := b.get(r, id); err == nil && (rec == nil || rec.state != New || !rec.lapsesAt.Equal(at)) {
				problem(id.String(), "the index says that its time to live is over at %s, its record does not", at.Format(time.RFC3339))
			}
		}},
		{spaceGroup, func(r store.Reader, k, v []byte) {
			to, group, id, ok := parseGroupKey(k)
			locked := ok && id == 0
			if locked && len(v) == 8 {
				id = ID(binary.BigEndian.Uint64(v))
			}
			if !ok || id == 0 {
				problem(fmt.Sprintf("key %q", k), "unreadable key")
				return
			}
			rec, err := b.get(r, id)
			if err == nil && (rec == nil || rec.to != to || rec.group != group || rec.state != Claimed && (locked || rec.state != New)) {
				problem(id.String(), "the index says that it is of the group %q of %s, its record does not", group, to)
			}
		}},
		{spaceKey, func(_ store.Reader, k, v []byte) {
			if _, err := decodeKey(v); err != nil {
				problem(fmt.Sprintf("key %q", k[1:]), "%v", err)
			}
		}},
		{spaceActor, func(_ store.Reader, k, v []byte) {
			if _, err := decodeActor(string(k[1:]), v); err != nil {
				problem("actor "+string(k[1:]), "%v", err)
			}
		}},
		{spaceEvent, func(_ store.Reader, k, v []byte) {
			if _, err := decodeEvent(0, v); err != nil {
				problem(fmt.Sprintf("event %x", k[1:]), "%v", err)
			}
		}},
	}
	for _, s := range steps {
		if err := check(s.space, s.each); err != nil {
			return messages, err
		}
	}
	err = b.store.View(ctx, func(r store.Reader) error {
		r.Sums([]byte{spaceCount}, func(k []byte, n int64) bool {
			actor, s, ok := parseCountKey(k)
			if !ok {
				problem(fmt.Sprintf("counter %q", k), "unreadable name")
			} else if n != counted[string(k)] {
				problem("counter of "+actor+" "+s.String(), "it says %d, and there are %d", n, counted[string(k)])
			}
			delete(counted, string(k))
			return true
		})
		return nil
	})
	for k, n := range counted {
		if n != 0 {
			actor, s, _ := parseCountKey([]byte(k))
			problem("counter of "+actor+" "+s.String(), "it is missing, and there are %d", n)
		}
	}
	return messages, err
}

// verifyReceipts checks that every ended start of a message has its receipt.
func (b *Box) verifyReceipts(r store.Reader, rec *record, problem func(where, format string, args ...any)) {
	want := rec.attempt
	if rec.state == Claimed {
		want--
	}
	have := 0
	prefix := idKey(spaceReceipt, rec.id)
	r.Scan(prefix, after(prefix), func([]byte, []byte) bool { have++; return true })
	if have != want {
		problem(rec.id.String(), "%d starts have ended, and there are %d receipts", want, have)
	}
}

// verifyGroup checks that the index knows a message of a group, and that it is the
// one that runs where it does.
func (b *Box) verifyGroup(r store.Reader, rec *record, problem func(where, format string, args ...any)) {
	if r.Get(groupMemberKey(rec.to, rec.group, rec.id)) == nil {
		problem(rec.id.String(), "it is of the group %q and the index does not say so", rec.group)
	}
	if running, _ := b.groupTx(r, rec.to, rec.group); rec.state == Claimed && running != rec.id {
		problem(rec.id.String(), "it is CLAIMED, and another one of its group too")
	}
}

func (b *Box) verifyOwner(r store.Reader, id ID, what string, problem func(where, format string, args ...any)) {
	if r.Get(idKey(spaceOpen, id)) == nil && r.Get(idKey(spaceClosed, id)) == nil {
		problem(id.String(), "%s is there, the message is not", what)
	}
}
