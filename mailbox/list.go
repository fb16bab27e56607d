package mailbox

import (
	"bytes"
	"context"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A Filter says which messages List returns; zero fields do not restrict.
type Filter struct {
	Actor   string
	State   State
	From    string
	Subject string        // a part of it
	Older   time.Duration // sent at least so long ago
	Limit   int           // 0 = 50, at most 1000
	After   string        // Page.Next of the page before, or a message id
	Newest  bool          // newest first, instead of in send order; After goes that way too
}

// A Page is a part of a list, in the order that was asked for. It may hold fewer
// messages than its limit, even none, while there are more.
type Page struct {
	Messages []Message
	Next     string // for Filter.After; "" where nothing follows
	Looked   int    // at so many messages for this page
}

const (
	defaultPage = 50
	maxPage     = 1000
)

// listBounds say how long a list goes on.
type listBounds struct {
	// It reads the store in steps of so many records, and so many bytes of contents,
	// so that no snapshot of it is held for long.
	records, bytes int
	// A page ends after so many steps, or so long, whatever it has found.
	steps int
	time  time.Duration
}

var ordinaryBounds = listBounds{records: 4096, bytes: 4 << 20, steps: 32, time: 100 * time.Millisecond}

// List returns messages in send order, or newest first. It changes nothing (P3.10).
// Its time is bounded: where few messages of many match, the page ends before its
// limit, and Next says where to go on. Unreadable messages are left out; Verify
// reports them. A cursor or a limit that cannot be is refused, bad_request.
func (b *Box) List(ctx context.Context, f Filter) (Page, error) {
	l, err := b.listing(f)
	if err != nil {
		return Page{}, err
	}
	began := time.Now()
	for step := 0; step < b.bounds.steps && (step == 0 || time.Since(began) < b.bounds.time); step++ {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		var end bool
		err := b.store.View(ctx, func(r store.Reader) (err error) {
			end, err = l.step(r)
			return err
		})
		if err != nil {
			return Page{}, err
		}
		if end {
			return l.page, nil
		}
	}
	l.page.Next = l.at.String()
	return l.page, nil
}

// A listing is one List under way.
type listing struct {
	box *Box
	Filter
	held    []ID      // where only CLAIMED ones are asked for: those to look at
	known   bool      // held says it all
	before  time.Time // what was sent later is not old enough; zero: all are
	from    []byte
	subject []byte
	at      ID // the last message that was looked at, 0 before the first
	page    Page
}

func (b *Box) listing(f Filter) (*listing, error) {
	switch {
	case f.Limit < 0 || f.Limit > maxPage:
		return nil, refusal.New(refusal.BadRequest, "the limit is out of range", "a page holds 1 to 1000 messages", "use the cursor of a page to get the next")
	case f.Older < 0:
		return nil, refusal.New(refusal.BadRequest, "the age is negative", "a message is at least so old", "give 0 or more")
	case f.Limit == 0:
		f.Limit = defaultPage
	}
	l := &listing{box: b, Filter: f, from: []byte(f.From), subject: []byte(f.Subject)}
	if f.After != "" {
		id, err := ParseID(f.After)
		if err != nil {
			return nil, refusal.New(refusal.BadRequest, quote(f.After)+" is no cursor", "a cursor is the `next` of a page before, or a message id",
				"give one of these, or none for the first page")
		}
		l.at = id
	}
	if f.State == Claimed {
		l.held, l.known = b.index.held(l.at, f.Newest)
	}
	if f.Older > 0 {
		l.before = b.wall().Add(-f.Older)
	}
	return l, nil
}

// step goes on behind l.at in one state of the store, and reports whether the page
// is done.
func (l *listing) step(r store.Reader) (end bool, err error) {
	next := l.box.walkFrom(r, l.State, l.at, l.Newest, l.wants).next
	if l.known {
		next = func() *seen { return l.nextHeld(r) }
	}
	for records, size := 0, 0; records < l.box.bounds.records && size < l.box.bounds.bytes; records++ {
		one := next()
		if one == nil {
			return true, nil
		}
		if one.shown {
			size += len(one.content)
			if l.matches(one) {
				c, err := decodeContent(one.id, one.content)
				if err != nil {
					return false, err // it was read a moment ago
				}
				if len(l.page.Messages) == l.Limit {
					l.page.Next = l.at.String()
					return true, nil
				}
				l.page.Messages = append(l.page.Messages, l.box.message(&one.rec, c))
			}
		}
		l.page.Looked++
		l.at = one.id
	}
	return false, nil
}

// nextHeld is walk.next among those that are held. It saves looking at all that wait.
func (l *listing) nextHeld(r store.Reader) *seen {
	if len(l.held) == 0 {
		return nil
	}
	one := &seen{id: l.held[0], content: r.Get(idKey(spaceContent, l.held[0]))}
	l.held = l.held[1:]
	v := r.Get(idKey(spaceOpen, one.id))
	one.shown = v != nil && one.rec.decode(one.id, v, l.box.actors.name) == nil && l.wants(&one.rec)
	return one
}

// wants reports whether a record passes the filters.
func (l *listing) wants(rec *record) bool {
	return (l.Actor == "" || rec.to == l.Actor) && (l.State == 0 || rec.state == l.State)
}

// matches reports whether a content can be read and passes the filters.
func (l *listing) matches(one *seen) bool {
	h, err := glance(one.id, one.content)
	return err == nil && (l.From == "" || bytes.Equal(h.from, l.from)) && bytes.Contains(h.subject, l.subject) &&
		(l.before.IsZero() || !h.createdAt.After(l.before))
}

// message is rec and its content as people see them.
func (b *Box) message(rec *record, c *content) Message {
	m := Message{ID: rec.id, To: rec.to, From: c.from, Subject: c.subject, Headers: c.headers, State: rec.state,
		Priority: rec.priority, Group: c.group, Key: c.key, Attempt: rec.attempt, Attempts: rec.attempts,
		MaxAttempts: b.policy(rec.to).Retry.MaxAttempts, Size: len(c.body), CreatedAt: c.createdAt,
		AvailableAt: rec.dueAt, EndedAt: rec.endedAt, Deaths: rec.deaths}
	if rec.state == New || rec.state == Claimed {
		m.LapsesAt = rec.lapsesAt
	}
	if m.AvailableAt.IsZero() {
		m.AvailableAt = c.createdAt
	}
	if rec.state == Claimed {
		left := b.remaining(rec, b.leases.Now())
		m.Claim = &Claim{Holder: rec.holder(), Token: rec.claim.token, Attempt: rec.attempt, StartedAt: rec.claim.startedAt,
			ExpiresAt: b.wall().Add(left).UTC(), Remaining: left, Progress: rec.claim.progress}
	}
	if rec.failure.Category != "" {
		f := rec.failure
		m.LastFailure = &f
	}
	return m
}
