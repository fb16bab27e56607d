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
// sends without their index entry and the reverse, keys that cannot be read,
// counts that do not equal what they count. It changes nothing, and returns the
// number of messages. The store may be in use: what is compared with each other is
// read from one state of it, and no commit waits for that.
func (b *Box) Verify(ctx context.Context, found func(Problem)) (messages int64, err error) {
	v := &verifier{box: b, found: found}
	for _, s := range []struct {
		space byte
		check func(r store.Reader, k, val []byte)
	}{
		{spaceOpen, v.open}, {spaceClosed, v.closed}, {spaceContent, v.content}, {spaceReceipt, v.receipt}, {spaceResult, v.result},
		{spaceStaged, v.staged}, {spacePurge, v.purge}, {spaceLapse, v.lapse}, {spaceGroup, v.group}, {spaceBlock, v.block}, {spaceKey, v.key},
		{spaceActor, v.actor}, {spaceEvent, v.event},
	} {
		if err := v.scan(ctx, s.space, s.check); err != nil {
			return v.messages, err
		}
	}
	return v.messages, v.counts(ctx)
}

// A verifier is one run of Verify.
type verifier struct {
	box      *Box
	found    func(Problem)
	messages int64
}

func (v *verifier) problem(where, format string, args ...any) {
	v.found(Problem{Where: where, What: fmt.Sprintf(format, args...)})
}

func (v *verifier) unreadableKey(k []byte) { v.problem(fmt.Sprintf("key %q", k), "unreadable key") }

// scan gives every record of a space to check, a bounded number from one snapshot.
func (v *verifier) scan(ctx context.Context, space byte, check func(r store.Reader, k, val []byte)) error {
	for from := []byte{space}; from != nil; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := v.box.store.View(ctx, func(r store.Reader) error {
			n := 0
			next := []byte(nil)
			r.Scan(from, nil, func(k, val []byte) bool {
				if n == verifyStep {
					next = append([]byte(nil), k...)
					return false
				}
				n++
				check(r, k, val)
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

func (v *verifier) open(r store.Reader, k, val []byte)   { v.record(r, k, val, true) }
func (v *verifier) closed(r store.Reader, k, val []byte) { v.record(r, k, val, false) }

func (v *verifier) record(r store.Reader, k, val []byte, open bool) {
	id, ok := parseIDKey(k)
	if !ok || len(k) != 9 {
		v.unreadableKey(k)
		return
	}
	v.messages++
	rec, err := decodeRecord(id, val, nil)
	if err != nil {
		v.problem(id.String(), "%v", err)
		return
	}
	if rec.open() != open {
		v.problem(id.String(), "it is %s and lies with the wrong records", rec.state)
	}
	if open && r.Get(idKey(spaceClosed, id)) != nil {
		v.problem(id.String(), "it has two records")
	}
	if r.Get(idKey(spaceContent, id)) == nil {
		v.problem(id.String(), "its content is missing")
	}
	if rec.state == Claimed && rec.claim.token != rec.last {
		v.problem(id.String(), "its claim's token %d is not its last one, %d", rec.claim.token, rec.last)
	}
	v.indexed(r, rec)
	v.receipts(r, rec)
}

// indexed checks that the indexes know of a message what its record says.
func (v *verifier) indexed(r store.Reader, rec *record) {
	if !rec.purgeAt.IsZero() && r.Get(purgeKey(rec.purgeAt, rec.id)) == nil {
		v.problem(rec.id.String(), "it is to be removed at %s and the index does not say so", rec.purgeAt.Format(time.RFC3339))
	}
	if rec.state == staged && r.Get(stagedKey(rec.parent, rec.id)) == nil {
		v.problem(rec.id.String(), "it is staged under %s and the index does not say so", rec.parent.ID)
	}
	if rec.state == New && !rec.lapsesAt.IsZero() && r.Get(lapseKey(rec.lapsesAt, rec.id)) == nil {
		v.problem(rec.id.String(), "its time to live is over at %s and the index does not say so", rec.lapsesAt.Format(time.RFC3339))
	}
	v.blocks(r, rec)
	if rec.group == "" || rec.state != New && rec.state != Claimed {
		return
	}
	if r.Get(groupMemberKey(rec.to, rec.group, rec.id)) == nil {
		v.problem(rec.id.String(), "it is of the group %q and the index does not say so", rec.group)
	}
	if running, _ := v.box.groupTx(r, rec.to, rec.group); rec.state == Claimed && running != rec.id {
		v.problem(rec.id.String(), "it is CLAIMED, and another one of its group too")
	}
}

// blocks checks that the block of an open message is marked for it, and for its claim.
func (v *verifier) blocks(r store.Reader, rec *record) {
	if !rec.open() || !v.box.marked(r) {
		return // nobody has opened this store yet who needs marks
	}
	k := v.box.blockOf(rec.id)
	if r.Get(mark{rec.to, rec.priority, k}.key()) == nil {
		v.problem(rec.id.String(), "it is %s, and its block is not marked as one with such messages of %s", rec.state, rec.to)
	}
	if rec.state == Claimed && r.Get(mark{block: k}.key()) == nil {
		v.problem(rec.id.String(), "it is CLAIMED, and its block is not marked as one with claims")
	}
}

// receipts checks that every ended start of a message has its receipt.
func (v *verifier) receipts(r store.Reader, rec *record) {
	want := rec.attempt
	if rec.state == Claimed {
		want--
	}
	have := 0
	prefix := idKey(spaceReceipt, rec.id)
	r.Scan(prefix, after(prefix), func([]byte, []byte) bool { have++; return true })
	if have != want {
		v.problem(rec.id.String(), "%d starts have ended, and there are %d receipts", want, have)
	}
}

func (v *verifier) content(r store.Reader, k, val []byte) {
	id, _ := parseIDKey(k)
	if _, err := decodeContent(id, val); err != nil {
		v.problem(id.String(), "%v", err)
	}
	v.owner(r, id, "content")
}

func (v *verifier) receipt(r store.Reader, k, val []byte) {
	id, attempt, ok := parseReceiptKey(k)
	if !ok {
		v.unreadableKey(k)
		return
	}
	if _, err := decodeReceipt(id, attempt, val); err != nil {
		v.problem(id.String(), "%v", err)
	}
	if r.Get(claimKey(spacePending, Ref{ID: id})) == nil {
		v.owner(r, id, "a receipt")
	}
}

func (v *verifier) result(r store.Reader, k, val []byte) {
	id, _ := parseIDKey(k)
	if _, _, err := decodeResult(id, val); err != nil {
		v.problem(id.String(), "%v", err)
	}
	v.owner(r, id, "a result")
}

// owner checks that what belongs to a message has it.
func (v *verifier) owner(r store.Reader, id ID, what string) {
	if r.Get(idKey(spaceOpen, id)) == nil && r.Get(idKey(spaceClosed, id)) == nil {
		v.problem(id.String(), "%s is there, the message is not", what)
	}
}

// agrees reads the record that an index entry is about, and reports whether it
// says the same; one that cannot be read is a problem of its own, found elsewhere.
func (v *verifier) agrees(r store.Reader, id ID, same func(*record) bool) bool {
	rec, err := v.box.get(r, id)
	return err != nil || rec != nil && same(rec)
}

func (v *verifier) staged(r store.Reader, k, _ []byte) {
	parent, id, ok := parseStagedKey(k)
	if !ok {
		v.unreadableKey(k)
		return
	}
	if !v.agrees(r, id, func(rec *record) bool { return rec.state == staged && rec.parent == parent }) {
		v.problem(id.String(), "the index calls it staged under %s, its record does not", parent.ID)
	}
}

func (v *verifier) purge(r store.Reader, k, val []byte) {
	at, id, ok := parseDueKey(k)
	if !ok {
		v.unreadableKey(k)
		return
	}
	if len(val) > 1 && val[0] == keyOnly {
		return // a later message may have the key since
	}
	if !v.agrees(r, id, func(rec *record) bool { return rec.purgeAt.Equal(at) }) {
		v.problem(id.String(), "the index says that it is to be removed at %s, its record does not", at.Format(time.RFC3339))
	}
}

func (v *verifier) lapse(r store.Reader, k, _ []byte) {
	at, id, ok := parseDueKey(k)
	if !ok {
		v.unreadableKey(k)
		return
	}
	if !v.agrees(r, id, func(rec *record) bool { return rec.state == New && rec.lapsesAt.Equal(at) }) {
		v.problem(id.String(), "the index says that its time to live is over at %s, its record does not", at.Format(time.RFC3339))
	}
}

func (v *verifier) group(r store.Reader, k, val []byte) {
	to, group, id, ok := parseGroupKey(k)
	running := ok && id == 0 // the entry of the one that is CLAIMED
	if running && len(val) == 8 {
		id = ID(binary.BigEndian.Uint64(val))
	}
	if !ok || id == 0 {
		v.unreadableKey(k)
		return
	}
	if !v.agrees(r, id, func(rec *record) bool {
		return rec.to == to && rec.group == group && (rec.state == Claimed || !running && rec.state == New)
	}) {
		v.problem(id.String(), "the index says that it is of the group %q of %s, its record does not", group, to)
	}
}

// block checks that a mark can be read. One that stands for no message is no damage.
func (v *verifier) block(_ store.Reader, k, _ []byte) {
	if _, ok := parseMark(k, v.box.actors.name); !ok && len(k) > 1 {
		v.unreadableKey(k)
	}
}

func (v *verifier) key(_ store.Reader, k, val []byte) {
	if _, err := decodeKey(val); err != nil {
		v.problem(fmt.Sprintf("key %q", k[1:]), "%v", err)
	}
}

func (v *verifier) actor(_ store.Reader, k, val []byte) {
	if _, err := decodeActor(string(k[1:]), val); err != nil {
		v.problem("actor "+string(k[1:]), "%v", err)
	}
}

func (v *verifier) event(_ store.Reader, k, val []byte) {
	if _, err := decodeEvent(0, val); err != nil {
		v.problem(fmt.Sprintf("event %x", k[1:]), "%v", err)
	}
}

// counter names a counter: the messages of one actor in one state.
type counter struct {
	to    string
	state State
}

// counts checks the counters against the records. Both are read from one snapshot:
// between two of them the commits of a store in use would look like contradictions.
// What is kept is a number for each counter, and of the records nothing.
func (v *verifier) counts(ctx context.Context) error {
	counted := map[counter]int64{}
	return v.box.store.View(ctx, func(r store.Reader) error {
		for _, space := range []byte{spaceOpen, spaceClosed} {
			v.count(ctx, r, space, counted)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.Sums([]byte{spaceCount}, func(k []byte, n int64) bool {
			actor, s, ok := parseCountKey(k)
			c := counter{actor, s}
			if !ok {
				v.problem(fmt.Sprintf("counter %q", k), "unreadable name")
			} else if n != counted[c] {
				v.problem("counter of "+actor+" "+s.String(), "it says %d, and there are %d", n, counted[c])
			}
			delete(counted, c)
			return true
		})
		for c, n := range counted {
			v.problem("counter of "+c.to+" "+c.state.String(), "it is missing, and there are %d", n)
		}
		return nil
	})
}

// count adds the records of a space to counted, until ctx ends.
func (v *verifier) count(ctx context.Context, r store.Reader, space byte, counted map[counter]int64) {
	var rec record // one serves for all
	n := 0
	r.Scan([]byte{space}, nil, func(k, val []byte) bool {
		if n++; n%verifyStep == 0 && ctx.Err() != nil {
			return false
		}
		id, ok := parseIDKey(k)
		if ok && rec.decode(id, val, v.box.actors.name) == nil { // others are reported by record
			counted[counter{rec.to, rec.state}]++
		}
		return true
	})
}
