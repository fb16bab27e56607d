package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A Client is one connection to the supervisor, with one method for each method
// of the protocol. Its methods may be called from any goroutine, side by side.
// A refusal of the supervisor is returned as a *protocol.Error, in which
// refusal.Of and refusal.Has find the refusal.
type Client struct {
	conn     net.Conn
	out      *protocol.Encoder
	identity protocol.Identity

	mu       sync.Mutex // guards what follows
	last     uint64
	waiting  map[protocol.ID]chan<- reply
	watchers map[int]func(protocol.Line)
	drained  bool  // drain has come
	err      error // why the connection ended; nil while it lives
	done     chan struct{}
	reader   sync.WaitGroup
}

type reply struct {
	line protocol.Line
	err  error
}

// NewClient speaks over conn, which it owns from now on. On a worker's channel
// the identity is left empty: the channel is the identity.
func NewClient(conn net.Conn, identity protocol.Identity) *Client {
	c := &Client{conn: conn, out: protocol.NewEncoder(conn), identity: identity,
		waiting: map[protocol.ID]chan<- reply{}, watchers: map[int]func(protocol.Line){}, done: make(chan struct{})}
	c.reader.Go(c.read)
	return c
}

// Close ends the connection; calls under way fail. What they asked may have been
// done. It can be repeated.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.reader.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Done is closed when the connection has ended: the supervisor is gone, or Close
// was called.
func (c *Client) Done() <-chan struct{} { return c.done }

// gone is the refusal of whatever is asked on a connection that has ended.
func gone(cause error) error {
	return refusal.New(refusal.Unavailable, "the supervisor is gone", "the connection to it has ended",
		"stop: nothing that this process does counts any more").Because(cause)
}

func (c *Client) read() {
	lines := protocol.NewDecoder(c.conn)
	for {
		text, err := lines.Line()
		if errors.Is(err, protocol.ErrLineTooLong) {
			continue
		}
		if err != nil {
			c.end(err)
			return
		}
		var line protocol.Line
		if err := json.Unmarshal(text, &line); err != nil {
			c.end(err)
			return
		}
		c.take(line)
	}
}

// take hands a line to whom it is for.
func (c *Client) take(line protocol.Line) {
	c.mu.Lock()
	if line.Method != "" {
		if line.Method == protocol.NotifyDrain {
			c.drained = true
		}
		watchers := make([]func(protocol.Line), 0, len(c.watchers))
		for _, w := range c.watchers {
			watchers = append(watchers, w)
		}
		c.mu.Unlock()
		for _, w := range watchers {
			w(line)
		}
		return
	}
	to := c.waiting[line.ID]
	delete(c.waiting, line.ID)
	c.mu.Unlock()
	if to != nil {
		to <- reply{line: line} // has room for it
	}
}

// end fails every call under way and to come.
func (c *Client) end(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	_ = c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = gone(err)
	for id, to := range c.waiting {
		delete(c.waiting, id)
		to <- reply{err: c.err}
	}
	close(c.done)
}

// watch has fn called with every notification, from the reading goroutine: it
// must not block. drained tells whether drain has come before.
func (c *Client) watch(fn func(protocol.Line)) (drained bool, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	key := int(c.last)
	c.watchers[key] = fn
	return c.drained, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, key)
	}
}

// call makes one request. sent is the time right before it went out: what
// remains of a claim counts from there. When ctx ends first the answer is given
// to late, if there is one, once it comes.
func (c *Client) call(ctx context.Context, method string, params, result any, late func(protocol.Line)) (sent time.Time, err error) {
	if err := checkText(method, params); err != nil {
		return time.Time{}, err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return time.Time{}, refusal.New(refusal.BadRequest, "write the request "+method, err.Error(), "").Because(err)
	}
	answer := make(chan reply, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return time.Time{}, c.err
	}
	c.last++
	id := protocol.ID(strconv.FormatUint(c.last, 10))
	c.waiting[id] = answer
	c.mu.Unlock()
	sent = time.Now()
	if err := c.out.Encode(protocol.Request{JSONRPC: "2.0", ID: id, Method: method, Params: raw}); err != nil {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		if !refusal.Has(err, refusal.MessageTooLarge) {
			// The stream may end in the middle of a line.
			_ = c.conn.Close()
			err = gone(err)
		}
		return sent, err
	}
	select {
	case r := <-answer:
		return sent, r.into(result)
	case <-ctx.Done():
	}
	if late != nil {
		go func() { // ends with the answer or the connection
			if r := <-answer; r.err == nil && r.line.Error == nil {
				late(r.line)
			}
		}()
		return sent, context.Cause(ctx)
	}
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
	return sent, context.Cause(ctx)
}

func (r reply) into(result any) error {
	switch {
	case r.err != nil:
		return r.err
	case r.line.Error != nil:
		return r.line.Error
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(r.line.Result, result); err != nil {
		return refusal.New(refusal.Failed, "read the supervisor's answer", err.Error(), "").Because(err)
	}
	return nil
}
