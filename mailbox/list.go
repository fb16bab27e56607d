package mailbox

import (
	"context"
	"strings"
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
}

// A Page is a part of a list, in send order.
type Page struct {
	Messages []Message
	Next     string // for Filter.After; "" where nothing follows
}

const (
	defaultPage = 50
	maxPage     = 1000
	// A list reads the store in steps of so many records, so that no snapshot of
	// it is held for long.
	listStep = 4096
)

// List returns messages in send order. It changes nothing (P3.10). Unreadable
// messages are left out; Verify reports them. A cursor or an actor that cannot
// be is refused, bad_request.
func (b *Box) List(ctx context.Context, f Filter) (Page, error) {
	limit := f.Limit
	switch {
	case limit == 0:
		limit = defaultPage
	case limit < 0 || limit > maxPage:
		return Page{}, refusal.New(refusal.BadRequest, "the limit is out of range", "a page holds 1 to 1000 messages", "use the cursor of a page to get the next")
	}
	var from ID
	if f.After != "" {
		id, err := ParseID(f.After)
		if err != nil {
			return Page{}, refusal.New(refusal.BadRequest, quote(f.After)+" is no cursor", "a cursor is the `next` of a page before, or a message id", "")
		}
		from = id
	}
	before := b.wall().Add(-f.Older)
	var page Page
	for {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		var last ID
		var end bool
		err := b.store.View(ctx, func(r store.Reader) error {
			last, end = b.walk(r, f.State, from, listStep, func(rec *record) bool {
				if f.Actor != "" && rec.to != f.Actor || f.State != 0 && rec.state != f.State {
					return true
				}
				c, err := decodeContent(rec.id, r.Get(idKey(spaceContent, rec.id)))
				if err != nil || f.From != "" && c.from != f.From || f.Subject != "" && !strings.Contains(c.subject, f.Subject) ||
					f.Older > 0 && c.createdAt.After(before) {
					return true
				}
				if len(page.Messages) == limit {
					page.Next = page.Messages[limit-1].ID.String()
					return false
				}
				page.Messages = append(page.Messages, b.message(rec, c))
				return true
			})
			return nil
		})
		if err != nil || end || page.Next != "" {
			return page, err
		}
		from = last
	}
}

// walk calls fn for the readable messages behind from in id order, at most step
// of them, until fn returns false. It returns the last id that it came to, and
// whether it came to the end. State restricts where it looks, 0 is both places.
func (b *Box) walk(r store.Reader, s State, from ID, step int, fn func(*record) bool) (last ID, end bool) {
	read := func(space byte) (recs []*record, full bool, last ID) {
		r.Scan(idKey(space, from+1), nil, func(k, v []byte) bool {
			id, ok := parseIDKey(k)
			if !ok {
				return true
			}
			last = id
			rec, err := decodeRecord(id, v, b.actors.name)
			if err == nil && b.visible(r, rec).state != staged {
				recs = append(recs, rec)
			}
			step := len(recs) >= step
			full = step
			return !step
		})
		return recs, full, last
	}
	var open, closed []*record
	var openFull, closedFull bool
	var openLast, closedLast ID
	if s == 0 || s == New || s == Claimed {
		open, openFull, openLast = read(spaceOpen)
	}
	if s == 0 || s != New && s != Claimed {
		closed, closedFull, closedLast = read(spaceClosed)
	}
	// Beyond the last id of a place that has more, the order is not known yet.
	until := ID(1<<63 - 1)
	if openFull {
		until = min(until, openLast)
	}
	if closedFull {
		until = min(until, closedLast)
	}
	for len(open) > 0 || len(closed) > 0 {
		from := &open
		if len(open) == 0 || len(closed) > 0 && closed[0].id < open[0].id {
			from = &closed
		}
		rec := (*from)[0]
		if rec.id > until {
			break
		}
		*from = (*from)[1:]
		last = rec.id
		if !fn(rec) {
			return last, false
		}
	}
	if !openFull && !closedFull {
		return last, true
	}
	return until, false
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
