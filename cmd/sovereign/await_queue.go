package main

import "slices"

// An awaitQueue says which messages are waited for first: those that are due first, and
// of each recipient as many as of the others, so that one that is paused does not keep
// the ends of the others from being told.
type awaitQueue struct {
	lanes map[string]*awaitLane
	order []*awaitLane // as they are first named
	left  int          // have not been next
}

type awaitLane struct {
	waiting []*sentMessage
	asked   int
}

func newAwaitQueue(all []*sentMessage) *awaitQueue {
	q := &awaitQueue{lanes: map[string]*awaitLane{}, left: len(all)}
	for _, m := range all {
		l := q.lanes[m.to]
		if l == nil {
			l = &awaitLane{}
			q.lanes[m.to] = l
			q.order = append(q.order, l)
		}
		l.waiting = append(l.waiting, m)
	}
	for _, l := range q.order {
		slices.SortStableFunc(l.waiting, func(a, b *sentMessage) int { return a.due.Compare(b.due) })
	}
	return q
}

// next is the message that is waited for next; nil: there is none.
func (q *awaitQueue) next() *sentMessage {
	var least *awaitLane
	for _, l := range q.order {
		if len(l.waiting) > 0 && (least == nil || l.asked < least.asked) {
			least = l
		}
	}
	if least == nil {
		return nil
	}
	m := least.waiting[0]
	least.waiting = least.waiting[1:]
	least.asked++
	q.left--
	return m
}

// waiting are the messages that have not been next.
func (q *awaitQueue) waiting() []*sentMessage {
	out := make([]*sentMessage, 0, q.left)
	for _, l := range q.order {
		out = append(out, l.waiting...)
	}
	return out
}

// done says that a message that was next is waited for no more.
func (q *awaitQueue) done(m *sentMessage) { q.lanes[m.to].asked-- }
