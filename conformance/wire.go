package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
)

// A wire is one connection on which lines of any form can be written, and
// answers are matched to requests by their id.
type wire struct {
	conn net.Conn

	mu      sync.Mutex // guards what follows
	last    int
	waiting map[protocol.ID]chan answer
	err     error // why it ended

	unasked  chan answer        // answers of id null
	notified chan protocol.Line // dropped where nobody takes them
}

// An answer is one line that came back, as it stood on the wire.
type answer struct {
	id     protocol.ID
	raw    []byte
	result json.RawMessage
	err    *protocol.Error
}

const kept = 64 // lines that wait to be looked at

func newWire(conn net.Conn, lines *protocol.Decoder) *wire {
	w := &wire{conn: conn, waiting: map[protocol.ID]chan answer{}, unasked: make(chan answer, kept), notified: make(chan protocol.Line, kept)}
	go w.read(lines) // ends with the connection
	return w
}

func (w *wire) read(lines *protocol.Decoder) {
	for {
		text, err := lines.Line()
		var line protocol.Line
		if err == nil {
			text = bytes.Clone(text)
			err = json.Unmarshal(text, &line)
		}
		if err != nil {
			w.end(fmt.Errorf("the connection has ended: %w", err))
			return
		}
		w.take(text, line)
	}
}

func (w *wire) take(text []byte, line protocol.Line) {
	if line.Method != "" {
		select {
		case w.notified <- line:
		default:
		}
		return
	}
	a := answer{id: line.ID, raw: text, result: line.Result, err: line.Error}
	w.mu.Lock()
	to := w.waiting[line.ID]
	delete(w.waiting, line.ID)
	w.mu.Unlock()
	if to == nil {
		to = w.unasked
	}
	select {
	case to <- a:
	default:
	}
}

func (w *wire) end(err error) {
	_ = w.conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	for _, to := range w.waiting {
		close(to)
	}
	w.waiting = nil
}

// begin writes one request and returns where its answer will come.
func (w *wire) begin(method string, params any) (<-chan answer, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return nil, w.err
	}
	w.last++
	id := protocol.ID(strconv.Itoa(w.last))
	to := make(chan answer, 1)
	w.waiting[id] = to
	w.mu.Unlock()
	line, err := json.Marshal(protocol.Request{JSONRPC: "2.0", ID: id, Method: method, Params: raw})
	if err != nil {
		return nil, err
	}
	return to, w.write(append(line, '\n'))
}

// expect returns where the answer of an id will come that the caller writes itself.
func (w *wire) expect(id protocol.ID) <-chan answer {
	to := make(chan answer, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		close(to)
		return to
	}
	w.waiting[id] = to
	return to
}

func (w *wire) write(b []byte) error {
	_, err := w.conn.Write(b)
	return err
}

// wait returns the answer that comes.
func (w *wire) wait(ctx context.Context, from <-chan answer) (answer, error) {
	select {
	case a, ok := <-from:
		if !ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			return a, w.err
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, fmt.Errorf("no answer came: %w", context.Cause(ctx))
	}
}
