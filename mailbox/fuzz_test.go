package mailbox

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/fence"
)

// sealed makes b a record with a right version and checksum, so that a fuzzer
// reaches the fields.
func sealed(version byte, b []byte) []byte {
	out := append([]byte{version}, b...)
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

// decodeAny decodes b as every kind of record and returns what was read, written
// again.
func decodeAny(b []byte) (again [][]byte) {
	if r, err := decodeRecord(7, b, nil); err == nil {
		again = append(again, r.encode())
	}
	if c, err := decodeContent(7, b); err == nil {
		again = append(again, c.encode())
	}
	if r, err := decodeReceipt(7, 1, b); err == nil {
		again = append(again, r.encode(nil))
	}
	if ev, err := decodeEvent(7, b); err == nil {
		again = append(again, ev.encode(nil))
	}
	if k, err := decodeKey(b); err == nil {
		again = append(again, k.encode())
	}
	if body, cut, err := decodeResult(7, b); err == nil {
		again = append(again, encodeResult(nil, body, cut))
	}
	return again
}

func drawTime(t *rapid.T) time.Time {
	ns := rapid.Int64Range(-1<<60, 1<<60).Draw(t, "ns")
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

func drawRecord(t *rapid.T) *record {
	r := &record{id: 7, state: State(rapid.IntRange(1, int(staged)).Draw(t, "state")), to: rapid.String().Draw(t, "to"),
		priority: rapid.IntRange(-100, 100).Draw(t, "priority"), dueAt: drawTime(t), attempt: rapid.IntRange(0, 1<<30).Draw(t, "attempt"),
		attempts: rapid.IntRange(0, 1<<30).Draw(t, "attempts"), last: fence.Token(rapid.Uint64Range(0, 1<<53).Draw(t, "last"))}
	if rapid.Bool().Draw(t, "failed") {
		r.failure = LastFailure{Category: CategoryTimeout, Reason: rapid.String().Draw(t, "reason"), At: drawTime(t)}
	}
	r.group, r.lapsesAt, r.deaths = rapid.String().Draw(t, "group"), drawTime(t), rapid.IntRange(0, 9).Draw(t, "deaths")
	switch r.state {
	case Claimed:
		r.claim = claim{task: rapid.Bool().Draw(t, "task"), staleAt: fence.Instant(rapid.SampledFrom([]int64{0, 7}).Draw(t, "stale")), slot: rapid.IntRange(1, 1000).Draw(t, "slot"), process: fence.NewProcess(), lease: 3, token: fence.Token(rapid.Uint64Range(1, 1<<53).Draw(t, "token")),
			startedAt: drawTime(t), expiresAt: fence.Instant(rapid.Int64Range(1, 1<<60).Draw(t, "expires")), limitAt: 9,
			auto: rapid.Bool().Draw(t, "auto"), cancelled: rapid.Bool().Draw(t, "cancelled"), progress: rapid.String().Draw(t, "progress"), request: "r"}
	case staged:
		r.parent = Ref{ID: 5, Token: 6}
	case Done, Dead, Parked:
		r.endedAt = drawTime(t)
	}
	return r
}

// What is written is what is read, and one flipped bit anywhere is refused. Remove
// the checksum from unseal and this fails.
func TestRecords_RoundTripAndRefuseDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := drawRecord(t)
		c := &content{from: rapid.String().Draw(t, "from"), subject: "s", headers: map[string]string{"a": "b", "": rapid.String().Draw(t, "h")},
			key: "k", group: "g", createdAt: drawTime(t), ttl: 5, body: rapid.SliceOf(rapid.Byte()).Draw(t, "body")}
		receipt := Receipt{Message: 7, Attempt: 1, Token: 5, LeaseToken: 4, Process: fence.NewProcess(), Slot: fence.Slot{Actor: "a", Number: 2},
			StartedAt: drawTime(t), EndedAt: drawTime(t), Status: Failed, Category: CategoryTimeout, Counted: true, ByWorker: rapid.Bool().Draw(t, "by"),
			Reason: rapid.String().Draw(t, "why"), ExitCode: -1, Signal: "KILL", verb: rapid.SampledFrom(verbs).Draw(t, "verb"), expired: rapid.Bool().Draw(t, "expired")}
		ev := Event{Seq: 7, At: drawTime(t), Kind: "x", Actor: "a", Slot: 1, Process: fence.NewProcess(), Message: 3, Attempt: 2, Token: 1, Category: "c", Text: "t"}
		key := keyRecord{id: 9, print: [16]byte{1}, until: drawTime(t)}
		same := func(got, want any, err error) {
			t.Helper()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, want %+v, %v", got, want, err)
			}
		}
		gotRecord, err := decodeRecord(7, rec.encode(), nil)
		rec.stock = stock{}
		same(gotRecord, rec, err)
		gotContent, err := decodeContent(7, c.encode())
		same(gotContent, c, err)
		gotReceipt, err := decodeReceipt(7, 1, receipt.encode(nil))
		same(gotReceipt, receipt, err)
		gotEvent, err := decodeEvent(7, ev.encode(nil))
		same(gotEvent, ev, err)
		gotKey, err := decodeKey(key.encode())
		same(gotKey, key, err)
		all := [][]byte{rec.encode(), c.encode(), receipt.encode(nil), ev.encode(nil), key.encode(), encodeResult(nil, c.body, true)}
		b := bytes.Clone(rapid.SampledFrom(all).Draw(t, "record"))
		b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if again := decodeAny(b); len(again) != 0 {
			t.Fatalf("damage was read: %x", b)
		}
	})
}

// Whatever bytes a record holds, decoding does not panic, and what it accepts it
// can write and read again.
func FuzzDecode(f *testing.F) {
	f.Add(byte(1), []byte{})
	f.Add(byte(1), []byte{byte(Claimed), 1, 'a', 0, 0, 1, 1, 5, 0, 1})
	r := &record{id: 7, state: Claimed, to: "a", claim: claim{process: fence.NewProcess(), token: 1, expiresAt: 1}}
	b := r.encode()
	f.Add(byte(1), b[1:len(b)-4])
	f.Fuzz(func(t *testing.T, version byte, b []byte) {
		decodeAny(b)
		for _, again := range decodeAny(sealed(version, b)) {
			if len(decodeAny(again)) == 0 {
				t.Fatalf("%x was read, and is written as what cannot be: %x", b, again)
			}
		}
		for _, key := range [][]byte{b, append([]byte{spaceCount}, b...)} {
			parseIDKey(key)
			parseClaimKey(key)
			parseStagedKey(key)
			parseReceiptKey(key)
			parseCountKey(key)
		}
	})
}

// A reason is UTF-8 of bounded length without control characters, whatever it was.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x00b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable(s)
		if !utf8.ValidString(got) || len(got) > maxReason || bytes.ContainsFunc([]byte(got), control) {
			t.Fatalf("%q became %q", s, got)
		}
		if printable(got) != got {
			t.Fatalf("%q is not stable", got)
		}
		if _, err := ParseID(s); err == nil && s[0] != 'm' {
			t.Fatal(s)
		}
	})
}

// Keys sort as what they name, and are read as they were written.
func TestKeys_RoundTripAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ID(rapid.Uint64().Draw(t, "a")), ID(rapid.Uint64().Draw(t, "b"))
		if got := bytes.Compare(idKey(spaceOpen, a), idKey(spaceOpen, b)); (got < 0) != (a < b) || (got == 0) != (a == b) {
			t.Fatalf("%d and %d sort as %d", a, b, got)
		}
		if id, ok := parseIDKey(idKey(spaceOpen, a)); !ok || id != a {
			t.Fatal(id)
		}
		parent := Ref{ID: a, Token: fence.Token(b)}
		if ref, ok := parseClaimKey(claimKey(spacePending, parent)); !ok || ref != parent {
			t.Fatal(ref)
		}
		if ref, id, ok := parseStagedKey(stagedKey(parent, b)); !ok || ref != parent || id != b {
			t.Fatal(ref, id)
		}
		n := rapid.IntRange(0, 1<<31).Draw(t, "attempt")
		if id, attempt, ok := parseReceiptKey((*stock)(nil).receiptKey(a, n)); !ok || id != a || attempt != n {
			t.Fatal(id, attempt)
		}
		if actor, s, ok := parseCountKey(countKey("resize.a-b", Dead)); !ok || actor != "resize.a-b" || s != Dead {
			t.Fatal(actor, s)
		}
		group := rapid.StringN(1, -1, maxGroup).Draw(t, "group")
		for _, id := range []ID{0, max(1, a)} {
			k := groupKey("resize", group)
			if id != 0 {
				k = groupMemberKey("resize", group, id)
			}
			if actor, g, got, ok := parseGroupKey(k); !ok || actor != "resize" || g != group || got != id {
				t.Fatal(actor, g, got, ok)
			}
		}
		end := after(idKey(spaceReceipt, a))
		if end != nil && bytes.Compare((*stock)(nil).receiptKey(a, n), end) >= 0 {
			t.Fatalf("the receipts of %d do not end before %x", a, end)
		}
	})
}

// The heap gives what the plainest search would, and those in it know their places,
// whatever is taken out of its middle or moves within it.
func TestHeap_IsSorted(t *testing.T) {
	type entry struct{ key, place int }
	rapid.Check(t, func(t *rapid.T) {
		h := heap[*entry]{before: func(a, b *entry) bool { return a.key < b.key }, moved: func(e *entry, place int) { e.place = place }}
		var plain []*entry
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key := rapid.IntRange(0, 50).Draw(t, "key")
			what := rapid.SampledFrom([]string{"push", "push", "pop", "remove", "fix"}).Draw(t, "what")
			if len(plain) == 0 {
				what = "push"
			}
			switch what {
			case "push":
				e := &entry{key: key, place: -1}
				h.push(e)
				plain = append(plain, e)
			case "fix":
				e := plain[key%len(plain)]
				e.key = key
				h.fix(e.place)
			case "remove":
				e := plain[key%len(plain)]
				if got := h.remove(e.place); got != e || e.place != -1 {
					t.Fatalf("removed %+v, want %+v", got, e)
				}
				plain = slices.Delete(plain, key%len(plain), key%len(plain)+1)
			case "pop":
				least := slices.MinFunc(plain, func(a, b *entry) int { return a.key - b.key })
				got := h.pop()
				if got.key != least.key || got.place != -1 {
					t.Fatalf("got %+v, want %+v", got, least)
				}
				plain = slices.DeleteFunc(plain, func(e *entry) bool { return e == got })
			}
			if len(h.all) != len(plain) {
				t.Fatal(len(h.all), len(plain))
			}
			for i, e := range h.all {
				if e.place != i {
					t.Fatalf("the one at place %d believes it is at %d", i, e.place)
				}
			}
		}
	})
}
