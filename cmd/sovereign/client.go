package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A client speaks to a supervisor over one socket, one request at a time but for ask.
type client struct {
	conn    net.Conn
	lines   *protocol.Decoder
	encoder *protocol.Encoder
	last    int                                         // id of the last request
	told    func(method string, params json.RawMessage) // notifications while it waits; nil: nobody
}

func newClient(conn net.Conn) *client {
	return &client{conn: conn, lines: protocol.NewDecoder(conn), encoder: protocol.NewEncoder(conn)}
}

func (c *client) Close() error { return c.conn.Close() }

// call makes one request and reads its answer into result, which may be nil. A
// refusal comes back as one. When ctx ends first, or the connection does, what
// became of the request is not known; the client is then of no further use.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	defer c.within(ctx)()
	id, err := c.write(method, params)
	if err == nil {
		err = c.answer(id, result)
	}
	return c.explain(ctx, err)
}

func (c *client) write(method string, params any) (protocol.ID, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return "", usage("write the request", err.Error(), "")
	}
	c.last++
	id := protocol.ID(strconv.Itoa(c.last))
	return id, c.encoder.Encode(protocol.Request{JSONRPC: "2.0", ID: id, Method: method, Params: raw})
}

// within has what is read and written fail once ctx has ended, until it is stopped.
func (c *client) within(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
}

// ask makes one request of several, whose answers next reads as they come.
func (c *client) ask(ctx context.Context, method string, params any) (protocol.ID, error) {
	defer c.within(ctx)()
	id, err := c.write(method, params)
	return id, c.explain(ctx, err)
}

// next reads one line: the answer to one of the requests of ask, or a notification.
func (c *client) next(ctx context.Context) (line protocol.Line, err error) {
	defer c.within(ctx)()
	text, err := c.lines.Line()
	if err == nil {
		err = json.Unmarshal(text, &line)
	}
	return line, c.explain(ctx, err)
}

// answer reads lines until the answer to id.
func (c *client) answer(id protocol.ID, result any) error {
	for {
		text, err := c.lines.Line()
		if err != nil {
			return err
		}
		var line protocol.Line
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		switch {
		case line.Method != "" && c.told != nil:
			c.told(line.Method, line.Params)
			continue
		case line.ID != id && line.ID != protocol.Null:
			continue
		case line.Error != nil && len(line.Error.Data.Problems) > 0:
			return problemsOf(line.Error.Data.Problems)
		case line.Error != nil:
			return line.Error.Refusal()
		case result == nil:
			return nil
		}
		return json.Unmarshal(line.Result, result)
	}
}

// problemsOf is what is wrong with an actors.yaml, as if it had been read here.
func problemsOf(list []protocol.ConfigProblem) error {
	p := &config.Problems{List: make([]config.Problem, len(list))}
	for i, one := range list {
		p.List[i] = config.Problem(one)
	}
	return p
}

// explain says in words what went wrong with the connection; refusals are left
// as they are.
func (c *client) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*refusal.Error](err); refused {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, isNet := errors.AsType[net.Error](err); isNet || errors.Is(err, io.EOF) {
		return refusal.New(refusal.Unavailable, "the supervisor ended the connection before it answered",
			"it is stopping, or was killed", "see `sovereign status`, then ask again").Later().Because(err)
	}
	return err
}

// endedSilently reports whether err says that the connection ended before an answer came.
func endedSilently(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// hungUp waits until the other end has closed the connection, or ctx ends.
func (c *client) hungUp(ctx context.Context) error {
	defer c.within(ctx)()
	for {
		if _, err := c.lines.Line(); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		}
	}
}
