package main

import (
	"context"
	"encoding/json"

	"github.com/sovereign-run/sovereign/protocol"
)

// A behindQueue looks after the messages that are not waited for yet: at all of them once,
// and from then on at those of which the journal tells.
type behindQueue struct {
	*batchWait
	client  *client
	placed  bool        // from is known
	begun   bool        // it has looked at all
	reading protocol.ID // request for what the journal tells; "" is none
	from    uint64      // place in the journal
	looks   []*sentMessage
	looking map[protocol.ID]*sentMessage
}

// maxLooks bounds the looks of one connection at a time.
const maxLooks = 32

// ask asks what is to be asked next; waiting tells which are not waited for.
func (b *behindQueue) ask(ctx context.Context, waiting func() []*sentMessage) (err error) {
	switch {
	case b.reading != "":
	case !b.placed:
		b.reading, err = b.client.ask(ctx, protocol.MethodInboxFollow, protocol.InboxFollowParams{}) // where the journal ends
	default:
		if !b.begun { // what has ended before that place
			b.begun, b.looks = true, waiting()
		}
		b.reading, err = b.client.ask(ctx, protocol.MethodEventsList, protocol.EventsListParams{After: b.from, Limit: eventsPage, Wait: protocol.Duration(eventsWait)})
	}
	for err == nil && len(b.looks) > 0 && len(b.looking) < maxLooks {
		m := b.looks[0]
		b.looks = b.looks[1:]
		if !b.waitsFor(m.id) {
			continue
		}
		var id protocol.ID
		if id, err = b.client.ask(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: m.id}); err == nil {
			b.looking[id] = m
		}
	}
	return err
}

// answered takes the answer to one of its requests.
func (b *behindQueue) answered(line protocol.Line) error {
	if m := b.looking[line.ID]; m != nil {
		delete(b.looking, line.ID)
		return b.batchWait.answered(m, line)
	}
	if line.ID == "" || line.ID != b.reading {
		return nil
	}
	b.reading = ""
	if line.Error != nil {
		return line.Error.Refusal()
	}
	if !b.placed {
		var at protocol.InboxFollowed
		err := json.Unmarshal(line.Result, &at)
		b.from, b.placed = at.Events, true
		return err
	}
	var page protocol.Events
	if err := json.Unmarshal(line.Result, &page); err != nil {
		return err
	}
	b.from = max(b.from, page.Next)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range page.Events {
		if m := b.left[e.Message]; m != nil {
			b.looks = append(b.looks, m)
		}
	}
	return nil
}
