package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// maxAwaited bounds the messages that one command waits for at a time: a connection has
// room for 256 that wait.
const maxAwaited = 200

// A sentMessage is one message of a batch whose end is waited for. lines are those that
// it was sent by: more than one where they have the same key.
type sentMessage struct {
	id    string
	lines []int
	to    string
	due   time.Time // zero: at once
}

// A batchWait waits until each message of a batch has ended, over however many
// supervisors that takes.
type batchWait struct {
	at      place
	notices io.Writer
	idle    func()                                                // called when it begins to wait for a supervisor
	ended   func(m *sentMessage, d *protocol.MessageDetail) error // called as each ends; nil: it is gone

	mu   sync.Mutex // guards left
	left map[string]*sentMessage
}

// newBatchWait waits for what was sent by these lines.
func newBatchWait(batch []protocol.BatchMessage, sent []protocol.SendResult, now time.Time) *batchWait {
	w := &batchWait{left: map[string]*sentMessage{}}
	for i, s := range sent {
		m := w.left[s.ID]
		if m == nil {
			m = &sentMessage{id: s.ID, to: batch[i].To, due: batch[i].At}
			if d := batch[i].Delay.Std(); d > 0 {
				m.due = now.Add(d)
			}
			w.left[s.ID] = m
		}
		m.lines = append(m.lines, batch[i].Line)
	}
	return w
}

// rest are those that have not ended, in the order of the batch.
func (w *batchWait) rest() []*sentMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*sentMessage, 0, len(w.left))
	for _, m := range w.left {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *sentMessage) int { return a.lines[0] - b.lines[0] })
	return out
}

func (w *batchWait) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.left)
}

func (w *batchWait) end(m *sentMessage, d *protocol.MessageDetail) error {
	w.mu.Lock()
	_, there := w.left[m.id]
	delete(w.left, m.id)
	w.mu.Unlock()
	if !there {
		return nil
	}
	return w.ended(m, d)
}

// run returns once all have ended, or with ctx's cause.
func (w *batchWait) run(ctx context.Context) error {
	return overSupervisors(ctx, w.at, w.idle, func() (done, running bool, err error) {
		running, err = w.ask(ctx)
		return err == nil && w.count() == 0, running, err
	})
}

// ask asks for the end of each: of a supervisor until all have ended or it stops, of a
// stopped store once.
func (w *batchWait) ask(ctx context.Context) (running bool, err error) {
	conn, err := connectPatiently(ctx, w.at, toRead, patience{notices: w.notices})
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if conn.client == nil {
		return false, w.look(ctx, conn)
	}
	err = w.await(ctx, conn.client)
	if refusal.Has(err, refusal.Unavailable) {
		// It is stopping. Whether another one comes is seen by connecting again,
		// once this one has let go.
		err = conn.client.hungUp(ctx)
	}
	return true, err
}

// look looks once at each that is left, as it is on record.
func (w *batchWait) look(ctx context.Context, conn *connection) error {
	for _, m := range w.rest() {
		var d protocol.MessageDetail
		err := conn.call(ctx, protocol.MethodInboxShow, protocol.InboxShowParams{ID: m.id}, &d)
		switch {
		case refusal.Has(err, refusal.MessageMissing):
			err = w.end(m, nil)
		case err == nil && d.State.Ended():
			err = w.end(m, &d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAgain looks at what is left when the time is up: of those that it has not waited
// for yet, some may have ended.
func (w *batchWait) lookAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), silentFor)
	defer cancel()
	conn, err := connectTo(ctx, w.at, toRead)
	if err != nil {
		return err
	}
	return errors.Join(w.look(ctx, conn), conn.Close())
}

// await waits over one connection for all that is left, for maxAwaited at a time. Of those
// that have to wait for their turn the journal tells what happens to them meanwhile: those
// that are waited for may be stuck, and keep no end from being told.
func (w *batchWait) await(ctx context.Context, c *client) error {
	queue := newAwaitQueue(w.rest())
	asked := map[protocol.ID]*sentMessage{} // waited for
	behind := behindQueue{batchWait: w, client: c, looking: map[protocol.ID]*sentMessage{}}
	for {
		for len(asked) < maxAwaited {
			m := queue.next()
			if m == nil {
				break
			}
			if !w.waitsFor(m.id) { // it was looked at
				queue.done(m)
				continue
			}
			id, err := c.ask(ctx, protocol.MethodAwait, protocol.AwaitParams{ID: m.id})
			if err != nil {
				return err
			}
			asked[id] = m
		}
		if len(asked) == 0 {
			return nil
		}
		if queue.left > 0 {
			if err := behind.ask(ctx, queue.waiting); err != nil {
				return err
			}
		}
		line, err := c.next(ctx)
		if err != nil {
			return err
		}
		if m := asked[line.ID]; m != nil {
			delete(asked, line.ID)
			queue.done(m)
			err = w.answered(m, line)
		} else {
			err = behind.answered(line)
		}
		if err != nil {
			return err
		}
	}
}

// answered takes an answer about m, which may have ended.
func (w *batchWait) answered(m *sentMessage, line protocol.Line) error {
	if line.Error != nil {
		if r := line.Error.Refusal(); r.Category != refusal.MessageMissing {
			return r
		}
		return w.end(m, nil)
	}
	var d protocol.MessageDetail
	if err := json.Unmarshal(line.Result, &d); err != nil || !d.State.Ended() {
		return err
	}
	return w.end(m, &d)
}

// waitsFor reports whether the end of a message was not told yet.
func (w *batchWait) waitsFor(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left[id] != nil
}
