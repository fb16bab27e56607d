package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A Message is one claimed message in its handler's hands.
type Message struct {
	ID      string
	From    string
	Subject string
	Headers map[string]string
	Body    []byte
	Attempt int            // ordinal of this start, from 1
	Token   protocol.Token // the fence: give it to resources that compare numbers

	// Result is stored with the completion. Beyond 1 MiB it is cut.
	Result []byte

	client *Client
	late   bool // the answer came so long after the request that the deadline tells little
	ctx    context.Context
	lose   context.CancelCauseFunc

	mu       sync.Mutex // guards deadline
	deadline time.Time
}

func newMessage(ctx context.Context, c *Client, d protocol.Delivery, sent time.Time) *Message {
	m := &Message{ID: d.ID, From: d.From, Subject: d.Subject, Headers: d.Headers, Body: d.Body, Attempt: d.Attempt, Token: d.Token,
		client: c, deadline: sent.Add(time.Duration(d.RemainingMS) * time.Millisecond)}
	m.late = time.Since(sent) > time.Duration(d.RemainingMS)*time.Millisecond/4
	m.ctx, m.lose = context.WithCancelCause(ctx)
	return m
}

// Deadline is the time until which the claim is known to hold, on this process's
// clock. Renewals move it.
func (m *Message) Deadline() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deadline
}

// extend moves the deadline to what a renewal sent at sent has granted, never
// to earlier.
func (m *Message) extend(sent time.Time, remaining time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until := sent.Add(remaining); until.After(m.deadline) {
		m.deadline = until
	}
}

// Send sends within the attempt: the message becomes visible when the handler's
// attempt completes, and never if it does not. It returns once it is durable,
// its place in the recipient's inbox reserved.
func (m *Message) Send(ctx context.Context, out protocol.Outgoing) (protocol.SendResult, error) {
	return m.client.Send(ctx, protocol.SendParams{Outgoing: out, Claim: &protocol.ClaimRef{ID: m.ID, Token: m.Token}})
}

// Check returns nil while the claim is current, else the refusal. It is for the
// moment right before a step that cannot be taken back.
func (m *Message) Check(ctx context.Context) error {
	err := m.client.Check(ctx, m.ID, m.Token)
	if fenced(err) {
		m.lose(err)
	}
	return err
}

// Progress records what the handler is at, for people, and renews the claim.
func (m *Message) Progress(ctx context.Context, text string) error {
	return m.renew(ctx, &text)
}

func (m *Message) renew(ctx context.Context, progress *string) error {
	remaining, sent, err := m.client.Renew(ctx, m.ID, m.Token, progress)
	switch {
	case err == nil:
		m.extend(sent, remaining)
	case fenced(err):
		m.lose(err)
	}
	return err
}

// fenced reports whether err says for good that the claim, or the lease that it
// is made under, is not current.
func fenced(err error) bool {
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		return false
	}
	switch r.Category {
	case refusal.ActorLeaseLost, refusal.LeaseExpired, refusal.LeaseCorrupt, refusal.FencingTokenStale, refusal.AlreadySettled,
		refusal.MessageMissing, refusal.NotAddressee:
		return true
	}
	return false
}

// keep renews the claim at a third of the time left until its context ends. A
// renewal that gets no answer, or is refused for another reason than the fence, is
// tried again; at the deadline the claim is taken for lost.
func (m *Message) keep() {
	for {
		deadline := m.Deadline()
		left := time.Until(deadline)
		if left <= 0 {
			m.lose(refusal.New(refusal.LeaseExpired, "the claim of message "+m.ID+" has run out",
				"no renewal was answered in time", "stop: what this attempt does counts no more"))
			return
		}
		// A third for the pause, a third for the renewal, the rest to try again. At
		// the very end there is no use in trying more often than now and then.
		pause := max(left/3, min(left, 5*time.Millisecond))
		if !wait(m.ctx, pause) {
			return
		}
		patience := time.Now().Add(pause)
		if patience.After(deadline) {
			patience = deadline
		}
		ctx, cancel := context.WithDeadline(m.ctx, patience)
		_ = m.renew(ctx, nil) // what it means has been noted
		cancel()
	}
}

// wait is false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
