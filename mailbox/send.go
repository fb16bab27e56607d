package mailbox

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// Bounds of what a message carries beside its body.
const (
	maxSubject = 1 << 10 // bytes
	maxHeaders = 64      // number
	maxHeader  = 4 << 10 // bytes of all names and values together
	maxKey     = 256     // bytes of an idempotency key
	maxGroup   = 256     // bytes
	maxFrom    = 256     // bytes

	maxSpan = 100 * 365 * 24 * time.Hour // of a delay or time to live

	// MaxBody is the largest body that any actor can allow, in bytes.
	MaxBody = 1 << 20
)

// headersFit reports whether a message can have these headers, as far as their number
// and size go.
func headersFit(h map[string]string) bool { return len(h) <= maxHeaders && headersSize(h) <= maxHeader }

func headersSize(h map[string]string) (n int) {
	for k, v := range h {
		n += len(k) + len(v)
	}
	return n
}

// Send makes a message durable and visible to its recipient.
//
// With a Key that the recipient already has, the same content returns the first
// id and Duplicate, and other content is refused, duplicate_key. Refusals:
// unknown_actor, message_too_large, inbox_full, bad_request, disk_full. On
// return without an error the message is on disk.
func (b *Box) Send(ctx context.Context, m Outgoing) (Sent, error) {
	return b.send(ctx, m, func(store.Reader) error { return nil })
}

// SendFenced is Send for a worker, whose lease must be current and unexpired in
// the transaction that sends (P2.6). From is the holder's actor.
func (b *Box) SendFenced(ctx context.Context, h fence.Holder, m Outgoing) (Sent, error) {
	m.From = h.Slot.Actor
	return b.send(ctx, m, func(r store.Reader) error {
		_, err := b.leases.CheckTx(r, h, b.leases.Now())
		return err
	})
}

// fenceFirst is the answer to a worker's send that was refused with why before its fence
// was looked at: the form of a request is judged first, then the fence, then the rest
// (P3). A send that repeats one whose recipient has gone meanwhile is still a repeat.
func (b *Box) fenceFirst(ctx context.Context, why error, fence func(store.Reader) error) error {
	if refusal.Has(why, refusal.BadRequest) {
		return why
	}
	if err := b.store.View(ctx, fence); err != nil {
		return err
	}
	return why
}

// send is Send if allowed agrees in the transaction that sends.
func (b *Box) send(ctx context.Context, m Outgoing, allowed func(store.Reader) error) (Sent, error) {
	now := b.wall()
	d, err := b.draft(m, now)
	if err != nil {
		return Sent{}, b.fenceFirst(ctx, err, allowed)
	}
	err = b.store.Update(ctx, func(tx store.Tx) (err error) {
		if err := allowed(tx); err != nil {
			return err
		}
		d.sent, err = b.sendTx(tx, d, New, Ref{})
		return err
	})
	if err != nil {
		return Sent{}, err
	}
	b.visibleNow(d, d.sent)
	return d.sent, nil
}

// visibleNow folds a committed send into the index.
func (b *Box) visibleNow(d *draft, sent Sent) {
	if sent.Duplicate {
		return
	}
	b.tallies.of(d.to).sent.Add(1)
	b.arrivals.tell(sent.ID, d.to)
	b.lapses.set(d.lapsesAt)
	if !sent.blocked {
		b.index.push(d.to, sent.ID, d.priority, d.dueAt, d.now)
	}
}

// A draft is a send that has passed every check that needs no store.
type draft struct {
	to       string
	priority int
	dueAt    time.Time
	lapsesAt time.Time // zero: never
	keyUntil time.Time // zero: as long as the message exists
	keyFree  bool      // it is told which key it has, and does not hold it
	content  content
	encoded  []byte
	print    [16]byte // of the content, where there is a key
	limit    int64
	now      time.Time
	sent     Sent // of the transaction that ran last
}

func (b *Box) draft(m Outgoing, now time.Time) (*draft, error) {
	bad := func(what, why string) (*draft, error) {
		return nil, refusal.New(refusal.BadRequest, "the message cannot be sent: "+what, why, "correct that, and send it again: nothing was sent")
	}
	actor, ok := b.actors.get(m.To)
	switch {
	case !ok:
		return nil, unknownRecipient(m.To, "no actors.yaml that was run on this store declares it")
	case actor.Removed:
		return nil, unknownRecipient(m.To, "it is not in the present actors.yaml")
	case !actor.Mailbox:
		return nil, refusal.New(refusal.UnknownActor, "there is no mailbox of "+quote(m.To), "it is a daemon, and daemons get no messages",
			"send to a task or a worker; see `sovereign status`")
	}
	limit := int64(MaxBody)
	if actor.MaxBody > 0 {
		limit = min(limit, actor.MaxBody)
	}
	if int64(len(m.Body)) > limit {
		return nil, refusal.New(refusal.MessageTooLarge, fmt.Sprintf("the body of %d bytes is too large", len(m.Body)),
			fmt.Sprintf("%s takes bodies up to %d bytes", m.To, limit),
			"put the data in a file and send its path, or raise inbox.max_body (at most 1MiB)")
	}
	for k, v := range m.Headers {
		if k == "" || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return bad("a header is not valid", "names are not empty, names and values are UTF-8")
		}
	}
	switch {
	case m.Priority < minPriority || m.Priority > maxPriority:
		return bad(fmt.Sprintf("its priority is %d", m.Priority), fmt.Sprintf("priorities are from %d to %d", minPriority, maxPriority))
	case len(m.Subject) > maxSubject || !utf8.ValidString(m.Subject):
		return bad("its subject is not valid", fmt.Sprintf("subjects are UTF-8 of at most %d bytes", maxSubject))
	case !headersFit(m.Headers):
		return bad("its headers are too large", fmt.Sprintf("at most %d headers of together %d bytes", maxHeaders, maxHeader))
	case len(m.Key) > maxKey || !utf8.ValidString(m.Key):
		return bad("its key is not valid", fmt.Sprintf("keys are UTF-8 of at most %d bytes", maxKey))
	case len(m.Group) > maxGroup || !utf8.ValidString(m.Group):
		return bad("its group is not valid", fmt.Sprintf("groups are UTF-8 of at most %d bytes", maxGroup))
	case len(m.From) > maxFrom || !utf8.ValidString(m.From):
		return bad("its sender's name is not valid", fmt.Sprintf("names are UTF-8 of at most %d bytes", maxFrom))
	case m.Delay < 0 || m.TTL < 0 || m.KeyTTL < 0:
		return bad("a duration is negative", "delay, ttl and key ttl are zero or more")
	case m.Delay > 0 && !m.At.IsZero():
		return bad("it has both a delay and a time", "give one of them")
	case m.KeyTTL > 0 && m.Key == "":
		return bad("it has a key ttl and no key", "a key ttl says how long the key is held")
	}
	for _, d := range []time.Duration{m.Delay, m.TTL, m.KeyTTL, m.At.Sub(now)} {
		if d > maxSpan {
			return bad("a time is too far away", "it may be a hundred years from now at most")
		}
	}
	d := &draft{to: actor.Name, priority: m.Priority, limit: actor.Limit, now: now, content: content{
		from: m.From, subject: m.Subject, headers: maps.Clone(m.Headers), key: m.Key, group: m.Group,
		createdAt: now.UTC(), ttl: m.TTL, body: m.Body}}
	switch {
	case m.Delay > 0:
		d.dueAt = now.Add(m.Delay).UTC()
	case m.At.After(now):
		d.dueAt = m.At.UTC()
	}
	if m.TTL > 0 {
		d.lapsesAt = now.Add(m.TTL).UTC()
	}
	if m.Key != "" {
		d.print = d.content.fingerprint(d.priority)
		if m.KeyTTL > 0 {
			d.keyUntil = now.Add(m.KeyTTL).UTC()
		}
	}
	d.encoded = d.content.encode()
	return d, nil
}

// sendTx writes a message in state New, or staged under parent. A staged one
// takes its place in the recipient's inbox at once (P8).
func (b *Box) sendTx(tx store.Tx, d *draft, s State, parent Ref) (Sent, error) {
	if d.content.key != "" && !d.keyFree {
		dup, err := b.duplicateTx(tx, d, s, parent)
		if err != nil || dup.ID != 0 {
			return dup, err
		}
	}
	if d.limit > 0 {
		n := tx.Sum(countKey(d.to, New)) + tx.Sum(countKey(d.to, Claimed)) + tx.Sum(countKey(d.to, staged))
		if n >= d.limit {
			return Sent{}, refusal.New(refusal.InboxFull, "the inbox of "+d.to+" is full",
				fmt.Sprintf("%d messages wait, run or are reserved, and its limit is %d", n, d.limit),
				"wait until some have ended, or raise inbox.limit").Later()
		}
	}
	rec := &record{id: ID(tx.Next()), state: s, to: d.to, priority: d.priority, dueAt: d.dueAt, parent: parent,
		group: d.content.group, lapsesAt: d.lapsesAt}
	sent := Sent{ID: rec.id}
	tx.Put(rec.key(), rec.encode())
	b.markOpenTx(tx, rec)
	tx.Put(rec.stock.idKey(spaceContent, rec.id), d.encoded)
	tx.Add(rec.stock.countKey(d.to, s), 1)
	switch {
	case s == staged:
		tx.Put(stagedKey(parent, rec.id), []byte{0})
	case s == New && !rec.lapsesAt.IsZero():
		tx.Put(lapseKey(rec.lapsesAt, rec.id), []byte{0})
	}
	if s == New && rec.group != "" {
		tx.Put(groupMemberKey(rec.to, rec.group, rec.id), []byte{0})
		sent.blocked = b.blockedTx(tx, rec) != 0
	}
	if d.content.key != "" && !d.keyFree {
		tx.Put(dedupKey(d.to, d.content.key), keyRecord{id: rec.id, print: d.print, until: d.keyUntil}.encode())
	}
	return sent, nil
}

// A keyRecord says which message holds an idempotency key.
type keyRecord struct {
	id    ID
	print [16]byte
	until time.Time // zero: while the message exists
}

const keyVersion = 1

func (k keyRecord) encode() []byte {
	e := newEncoder(nil, keyVersion, 40)
	e.uint(uint64(k.id))
	e.raw(k.print[:])
	e.time(k.until)
	return e.seal()
}

func decodeKey(v []byte) (keyRecord, error) {
	d, err := unseal(v, keyVersion, named{kind: "an idempotency key"})
	if err != nil {
		return keyRecord{}, err
	}
	k := keyRecord{id: ID(d.uint()), print: [16]byte(d.raw(16)), until: d.time()}
	return k, d.done(named{kind: "an idempotency key"})
}

// duplicateTx returns the earlier message with the draft's key, if it still
// holds the key.
func (b *Box) duplicateTx(tx store.Tx, d *draft, s State, parent Ref) (Sent, error) {
	v := tx.Get(dedupKey(d.to, d.content.key))
	if v == nil {
		return Sent{}, nil
	}
	k, err := decodeKey(v)
	if err != nil {
		return Sent{}, err
	}
	holder, err := b.get(tx, k.id)
	if err != nil {
		return Sent{}, err
	}
	switch {
	case k.until.IsZero() && holder == nil, !k.until.IsZero() && !d.now.Before(k.until):
		return Sent{}, nil // free again
	case holder != nil && holder.state == staged && !published(tx, holder.parent) && (s != staged || holder.parent != parent):
		// To call this a duplicate would lose it, should that attempt fail; and nobody can
		// look at what holds the key.
		return Sent{}, refusal.New(refusal.DuplicateKey, fmt.Sprintf("the key %s is held by a send that is still staged", quote(d.content.key)),
			"the attempt that staged it has not ended", "send again when it has").Later()
	case bytes.Equal(k.print[:], d.print[:]):
		return Sent{ID: k.id, Duplicate: true}, nil
	case holder != nil && holder.state == staged && !published(tx, holder.parent):
		return Sent{}, refusal.New(refusal.DuplicateKey, fmt.Sprintf("the key %s is held by another send that is staged with it", quote(d.content.key)),
			"that one says something else", "use another key, or leave one of the two out")
	default:
		return Sent{}, refusal.New(refusal.DuplicateKey, fmt.Sprintf("the key %s is held by message %s", quote(d.content.key), k.id),
			"that message to "+d.to+" says something else", "use another key, or see `sovereign inbox show "+k.id.String()+"`")
	}
}

// keyOf says until when a message holds its key: zero is for as long as it exists. free
// is true where it has one, and holds it no more. A key that cannot be read is Verify's
// to report.
func (b *Box) keyOf(r store.Reader, rec *record, key string) (until time.Time, free bool) {
	if key == "" {
		return time.Time{}, false
	}
	v := r.Get(dedupKey(rec.to, key))
	if v == nil {
		return time.Time{}, true
	}
	k, err := decodeKey(v)
	if err != nil {
		return time.Time{}, false
	}
	if k.id != rec.id || !k.until.IsZero() && !b.wall().Before(k.until) {
		return time.Time{}, true
	}
	return k.until, false
}

// freeKeyTx frees the key of a message that is removed, unless a later message holds
// it. One with a time of its own that is not over stays until then: it is entered into
// the index of what may go, and until says when that is (zero: it does not stay).
func (b *Box) freeKeyTx(tx store.Tx, to, key string, id ID) (until time.Time) {
	if key == "" {
		return time.Time{}
	}
	at := dedupKey(to, key)
	v := tx.Get(at)
	if v == nil {
		return time.Time{}
	}
	k, err := decodeKey(v)
	switch {
	case err != nil || k.id != id:
		return time.Time{}
	case k.until.IsZero() || !b.wall().Before(k.until):
		tx.Delete(at)
		return time.Time{}
	}
	tx.Put(purgeKey(k.until, id), append([]byte{keyOnly}, at...))
	return k.until
}

// keyOnly stands, in the index of what may go, in the place of a state before an
// idempotency key whose message is gone.
const keyOnly = 0

// purgeKeyOf removes the idempotency key at, whose message, id, is gone, and its entry
// in the index of what may go, by which its time is over. A later message's is kept.
func (b *Box) purgeKeyOf(ctx context.Context, id ID, due time.Time, at []byte) error {
	return b.store.Update(store.Essential(ctx), func(tx store.Tx) error {
		if k, err := decodeKey(tx.Get(at)); err == nil && k.id == id && k.until.Equal(due) {
			tx.Delete(at)
		}
		tx.Delete(purgeKey(due, id))
		return nil
	})
}
