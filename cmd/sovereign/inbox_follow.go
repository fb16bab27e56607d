package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// A follower shows messages as they arrive and change.
type follower struct {
	inboxOptions
	streams streams
	conn    *connection
	actor   string
	newest  uint64 // the greatest id that was shown, or looked at
	shown   recent
}

// standing is what of a message changes with what happens to it.
type standing struct {
	state             protocol.MessageState
	attempt, attempts int
}

// recent knows how the messages stood that were shown last, so that none is shown twice
// alike: of what happened before a list the supervisor tells after it, and of two events
// that came at once it tells twice. Of more than its room it forgets the oldest half.
type recent struct{ young, old map[string]standing }

// recentRoom is half of how many messages recent knows.
const recentRoom = 5000

// alike reports whether m was shown as it is, and takes it for shown.
func (r *recent) alike(m protocol.Message) bool {
	now := standing{m.State, m.Attempt, m.Attempts}
	before, there := r.young[m.ID]
	if !there {
		before, there = r.old[m.ID]
	}
	if len(r.young) >= recentRoom || r.young == nil {
		r.young, r.old = map[string]standing{}, r.young
	}
	r.young[m.ID] = now
	return there && before == now
}

// followInbox shows the page, and then each message that arrives, or to which something
// happens, and which the filters let pass.
func (o inboxOptions) followInbox(ctx context.Context, io streams, conn *connection, actor string) error {
	if err := conn.mustRun("follow an inbox"); err != nil {
		return err
	}
	defer endWithReader(io.out)()
	f := follower{inboxOptions: o, streams: io, conn: conn, actor: actor}
	var at protocol.InboxFollowed // before the page: what arrives meanwhile is told twice rather than not at all
	if err := conn.call(ctx, protocol.MethodInboxFollow, protocol.InboxFollowParams{}, &at); err != nil {
		return err
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	for {
		params := protocol.InboxFollowParams{Actor: actor, Arrivals: at.Arrivals, Box: at.Box, Events: at.Events, Wait: protocol.Duration(eventsWait)}
		at = protocol.InboxFollowed{}
		err := conn.call(ctx, protocol.MethodInboxFollow, params, &at)
		if err == nil && at.Missed {
			why := "more messages arrived than could be followed"
			if at.Box != params.Box {
				why = "the supervisor is another one now"
			}
			err = f.catchUp(ctx, why)
		}
		for i := 0; err == nil && i < len(at.IDs); i++ {
			err = f.look(ctx, at.IDs[i])
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// begin shows what is there: a page, or all that came after the cursor.
func (f *follower) begin(ctx context.Context) error {
	if f.rest {
		f.limit = mostListed
		return f.pages(ctx)
	}
	page, err := f.list(ctx, f.streams, f.conn, f.actor)
	if err != nil {
		return err
	}
	if f.last > 0 {
		slices.Reverse(page.Messages)
		f.last = 0 // the newest were asked for once
	}
	return f.showAll(page.Messages)
}

// look shows a message as it is now.
func (f *follower) look(ctx context.Context, id string) error {
	var detail protocol.MessageDetail
	if err := f.conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: id}, &detail); err != nil {
		return ignoreMissing(err)
	}
	f.saw(id)
	if !f.wants(detail.Message, f.actor, time.Now()) {
		return nil
	}
	return f.show(detail.Message, time.Now())
}

// lastKnown is when the last thing happened to m of which a list tells the time.
func lastKnown(m protocol.Message) time.Time {
	switch {
	case !m.EndedAt.IsZero():
		return m.EndedAt
	case m.LastFailure != nil:
		return m.LastFailure.At
	default:
		return m.CreatedAt
	}
}

// show shows a message, which has been as it is since at, unless it was shown so.
func (f *follower) show(m protocol.Message, at time.Time) error {
	f.saw(m.ID)
	if f.shown.alike(m) {
		return nil
	}
	return f.line(f.streams.out, m, at)
}

// catchUp shows what was sent since the newest message that was seen, after more have
// arrived than the supervisor remembers, or it was replaced: why says which.
func (f *follower) catchUp(ctx context.Context, why string) error {
	fmt.Fprintln(f.streams.err, why+"; listing those that were sent meanwhile")
	f.after, f.limit = "", mostListed
	if f.newest > 0 {
		f.after = "m" + strconv.FormatUint(f.newest, 10)
	}
	return f.pages(ctx)
}

// pages shows what there is after the cursor.
func (f *follower) pages(ctx context.Context) error {
	for {
		page, err := f.page(ctx, f.conn, f.actor)
		if err != nil {
			return err
		}
		if err := f.showAll(page.Messages); err != nil {
			return err
		}
		if f.after = page.Next; f.after == "" {
			return nil
		}
	}
}

// showAll shows messages of a list.
func (f *follower) showAll(list []protocol.Message) error {
	for _, m := range list {
		if err := f.show(m, lastKnown(m)); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) saw(id string) {
	if n, err := strconv.ParseUint(strings.TrimPrefix(id, "m"), 10, 64); err == nil {
		f.newest = max(f.newest, n)
	}
}
