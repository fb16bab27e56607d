package server

import (
	"context"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// followPage bounds the arrivals and the events of one answer.
const followPage = 500

// inboxFollow answers once messages have arrived, or something has happened to some.
func (c *Control) inboxFollow(in asking, p protocol.InboxFollowParams) (any, error) {
	if p.Arrivals == 0 && p.Events == 0 {
		return c.followFromNow(in)
	}
	ctx := in.run
	if p.Wait > 0 {
		done, err := in.waiting()
		if err != nil {
			return nil, err
		}
		defer done()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(in.wait, p.Wait.Std())
		defer cancel()
	} else if err := in.bulky(); err != nil {
		return nil, err
	}
	out := protocol.InboxFollowed{IDs: []string{}, Arrivals: p.Arrivals, Box: p.Box, Events: p.Events}
	for {
		arrived, more, happened, err := c.changes(in, p, &out)
		switch {
		case err != nil:
			return nil, err
		case len(out.IDs) > 0, out.Missed:
			return out, nil
		case more && ctx.Err() == nil:
			continue // what has happened is of no interest here
		case p.Wait <= 0:
			return out, nil
		}
		select {
		case <-arrived:
		case <-happened:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			if passedOn(in.wait) {
				p.Arrivals, p.Box, p.Events = out.Arrivals, out.Box, out.Events
				return nil, anew(protocol.MethodInboxFollow, p)
			}
			return out, nil
		}
	}
}

// followFromNow is where following begins: behind the last event, at the next arrival.
func (c *Control) followFromNow(in asking) (any, error) {
	out := protocol.InboxFollowed{IDs: []string{}, Box: c.box.ArrivalsOf()}
	_, out.Arrivals, _, _ = c.box.Arrivals(0, 0)
	last, err := c.box.LastEvents(in.run, 1)
	if err != nil {
		return nil, err
	}
	for _, e := range last {
		out.Events = e.Seq
	}
	return out, nil
}

// changes adds to out what has happened behind its places, and moves them on. more says
// that there may be more of it, arrived and happened are closed when there is.
func (c *Control) changes(in asking, p protocol.InboxFollowParams, out *protocol.InboxFollowed) (arrived <-chan struct{}, more bool, happened <-chan struct{}, err error) {
	seen := map[mailbox.ID]bool{}
	add := func(id mailbox.ID) {
		if id != 0 && !seen[id] {
			seen[id] = true
			out.IDs = append(out.IDs, id.String())
		}
	}
	from, another := out.Arrivals, out.Box != "" && out.Box != c.box.ArrivalsOf()
	if another {
		from = 0 // its number may be one of this box's all the same
	}
	list, next, missed, arrived := c.box.Arrivals(from, followPage)
	for _, a := range list {
		if p.Actor == "" || a.To == p.Actor {
			add(a.ID)
		}
	}
	out.Arrivals, out.Box, out.Missed = next, c.box.ArrivalsOf(), missed || another
	evs, happened, err := c.box.Events(in.run, out.Events, followPage)
	for _, e := range evs {
		out.Events = e.Seq
		add(e.Message) // who is it to its event does not always say
	}
	return arrived, len(list) > 0 || len(evs) > 0, happened, err
}
