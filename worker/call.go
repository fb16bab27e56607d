package worker

import (
	"context"
	"fmt"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A CallError is a Call whose message did not complete.
type CallError struct {
	ID      string
	State   protocol.MessageState // DEAD or PARKED, or what it last was known to be
	Gone    bool                  // it was removed before its end was seen
	Failure *protocol.LastFailure // nil: it never failed
	Receipt *protocol.Receipt     // of its last attempt that has ended, nil: there was none
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("message %s is %s", e.ID, e.State)
	if e.Gone {
		text = fmt.Sprintf("message %s is gone", e.ID)
	}
	if e.Failure != nil {
		text += fmt.Sprintf(" (%s: %s)", e.Failure.Category, e.Failure.Reason)
	}
	return text
}

// Await waits until a message that the worker's actor sent has ended, or is gone, or
// ctx ends, whose error it then returns. A message that was never there, or was removed
// before Await was called, is refused, message_missing.
func (c *Client) Await(ctx context.Context, id string) (out protocol.Awaited, err error) {
	_, err = c.call(ctx, protocol.MethodAwait, protocol.WorkerAwaitParams{Identity: c.identity, ID: id}, &out, nil)
	return out, err
}

// Call sends a message and waits for its result. It always comes back: with the
// result of the message that completed; with a *CallError, where it is DEAD, PARKED or
// gone; with ctx's error when ctx ends first; or with the refusal of the send, or of a
// supervisor that stops. The message goes on where Call does not wait any longer.
//
// The message is sent at once, not with the completion of what is at hand: it is
// there, and done, also where that attempt fails. A handler that may run again gives
// it a Key, such as one made of the id of its own message: then the second run gets
// the first one's answer. A claim that waits holds a slot: an actor whose every slot
// calls the actor itself waits for ever, or until the timeout of its message.
func (c *Client) Call(ctx context.Context, out protocol.Outgoing) ([]byte, error) {
	sent, err := c.Send(ctx, protocol.SendParams{Outgoing: out})
	if err != nil {
		return nil, err
	}
	a, err := c.Await(ctx, sent.ID)
	switch {
	case refusal.Has(err, refusal.MessageMissing):
		return nil, &CallError{ID: sent.ID, Gone: true}
	case err != nil:
		return nil, err
	case a.Gone || a.State != protocol.MessageDone:
		return nil, &CallError{ID: a.ID, State: a.State, Gone: a.Gone, Failure: a.LastFailure, Receipt: a.Receipt}
	}
	return a.Result, nil
}

// Call is Client.Call within a handler: it also ends when the handler's claim is lost.
func (m *Message) Call(ctx context.Context, out protocol.Outgoing) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(context.Cause(m.ctx)) })()
	result, err := m.client.Call(ctx, out)
	if err != nil && m.ctx.Err() != nil {
		err = context.Cause(m.ctx)
	}
	return result, err
}

// Reply sends the answer to a message that asks for one asynchronously: to the actor
// that its header reply-to names, with the header correlation-id of the message, or
// its id. It becomes visible with the completion. Without reply-to it is refused,
// bad_request.
func (m *Message) Reply(ctx context.Context, body []byte) (protocol.SendResult, error) {
	to := m.Headers[protocol.HeaderReplyTo]
	if to == "" {
		return protocol.SendResult{}, refusal.New(refusal.BadRequest, "message "+m.ID+" asks for no reply", "it has no header "+protocol.HeaderReplyTo, "")
	}
	correlation := m.Headers[protocol.HeaderCorrelationID]
	if correlation == "" {
		correlation = m.ID
	}
	return m.Send(ctx, protocol.Outgoing{To: to, Body: body, Headers: map[string]string{protocol.HeaderCorrelationID: correlation}})
}
