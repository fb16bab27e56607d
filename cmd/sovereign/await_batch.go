package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
		if waiting := queue.waiting(); len(waiting) > 0 {
			if err := behind.ask(ctx, waiting); err != nil {
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

// An awaitQueue says which messages are waited for first: those that are due first, and
// of each recipient as many as of the others, so that one that is paused does not keep
// the ends of the others from being told.
type awaitQueue struct {
	lanes map[string]*awaitLane
	order []*awaitLane // as they are first named
}

type awaitLane struct {
	waiting []*sentMessage
	asked   int
}

func newAwaitQueue(all []*sentMessage) *awaitQueue {
	q := &awaitQueue{lanes: map[string]*awaitLane{}}
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
	return m
}

// waiting are the messages that have not been next.
func (q *awaitQueue) waiting() []*sentMessage {
	var out []*sentMessage
	for _, l := range q.order {
		out = append(out, l.waiting...)
	}
	return out
}

// done says that a message that was next is waited for no more.
func (q *awaitQueue) done(m *sentMessage) { q.lanes[m.to].asked-- }

// howToLook is the command that shows these messages.
func howToLook(all []*sentMessage) string {
	const named = 8
	if len(all) > named {
		return "`sovereign inbox`, and `sovereign inbox show " + all[0].id + "` for one"
	}
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.id
	}
	return "`sovereign inbox show " + strings.Join(ids, " ") + "`"
}

// awaitBatch waits for the end of each message, and tells of each as it ends.
func (o sendOptions) awaitBatch(ctx context.Context, io streams, batch []protocol.BatchMessage, sent []protocol.SendResult) error {
	w := newBatchWait(batch, sent, time.Now())
	w.at, w.notices = locate(o.data, os.Getenv), io.err
	total := int64(len(w.left))
	shown := newCounter(io.err, "ended", o.json)
	lacking := map[string]int{}
	var failed []*sentMessage
	w.idle = func() {}
	if !o.json {
		w.idle = sync.OnceFunc(func() { shown.end(); fmt.Fprintln(io.err, noSupervisor) })
	}
	w.ended = func(m *sentMessage, d *protocol.MessageDetail) error {
		state := "gone"
		if d != nil {
			state = string(d.State)
		}
		if d == nil || d.State != protocol.MessageDone {
			lacking[state]++
			failed = append(failed, m)
		}
		shown.end()
		for _, line := range m.lines {
			if err := o.tellEnd(io, line, m.id, state, d); err != nil {
				return err
			}
		}
		shown.of(total-int64(w.count()), total)
		return nil
	}
	stop := onInterrupt(io.err, func() string {
		rest := w.rest()
		if len(rest) == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %s go on: see %s", len(rest), plural(total, "message"), howToLook(rest))
	})
	defer stop()
	defer endWithReader(io.out)()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.timeout))
		defer cancel()
	}
	shown.of(0, total)
	err := w.run(ctx)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = w.lookAgain(ctx)
		if rest := w.rest(); len(rest) > 0 {
			err = refusal.New(refusal.Failed, fmt.Sprintf("%d of %s have not ended within %s", len(rest), plural(total, "message"), o.timeout.String()),
				"", "see "+howToLook(rest)).Later().Because(err)
		}
	}
	shown.end()
	switch {
	case err != nil:
		return err
	case len(failed) == 0:
		return nil
	case !o.json:
		fmt.Fprint(io.err, explain(notAllDone(lacking, failed, total)))
	}
	return statusError{status: exitFailed}
}

// notAllDone says which ended otherwise.
func notAllDone(lacking map[string]int, failed []*sentMessage, total int64) *refusal.Error {
	slices.SortFunc(failed, func(a, b *sentMessage) int { return a.lines[0] - b.lines[0] })
	var why []string
	for _, state := range []string{string(protocol.MessageDead), string(protocol.MessageParked), "gone"} {
		if lacking[state] > 0 {
			why = append(why, fmt.Sprintf("%d %s", lacking[state], state))
		}
	}
	return refusal.New(refusal.Failed, fmt.Sprintf("%d of %s are not DONE", len(failed), plural(total, "message")),
		strings.Join(why, ", "), "see "+howToLook(failed))
}

// An endedLine is how a message of a batch ended, for programs.
type endedLine struct {
	Line int `json:"line"`
	protocol.MessageDetail
}

// A goneLine is a message of a batch that is no more.
type goneLine struct {
	Line int    `json:"line"`
	ID   string `json:"id"`
	Gone bool   `json:"gone"`
}

// tellEnd writes the line of a message that has ended: its line in the batch, its id, its
// state, and its result or last failure; nil: it is gone.
func (o sendOptions) tellEnd(io streams, line int, id, state string, d *protocol.MessageDetail) error {
	if o.json {
		if d == nil {
			return writeJSON(io.out, goneLine{line, id, true})
		}
		return writeJSON(io.out, endedLine{line, *d})
	}
	_, err := fmt.Fprintf(io.out, "%d\t%s\t%s\t%s\n", line, id, state, endInShort(d))
	return err
}

// endInShort is the beginning of a result, or why there is none, on one line.
func endInShort(d *protocol.MessageDetail) string {
	switch {
	case d == nil:
		return "it has been removed"
	case d.State != protocol.MessageDone && d.LastFailure != nil:
		return protocol.Cut(d.LastFailure.Category+": "+inShort(d.LastFailure.Reason), maxInShort)
	case d.State != protocol.MessageDone:
		return printable(d.Why)
	case d.ResultBase64 != nil:
		return plural(int64(len(d.ResultBase64)), "byte") + " that are no text"
	case d.Result == nil:
		return ""
	}
	return protocol.Cut(printable(strings.TrimSuffix(*d.Result, "\n")), maxInShort)
}

// maxInShort is how much of a result or reason stands on a line, in bytes.
const maxInShort = 200
