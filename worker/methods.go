package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
)

// Claim asks for messages. An empty answer is no error: there was none within
// p.Wait. When ctx ends before the answer comes, what it brings is released,
// uncharged. sent is when the request went out: what remains of the claims
// counts from there.
func (c *Client) Claim(ctx context.Context, p protocol.ClaimParams) (messages []protocol.Delivery, sent time.Time, err error) {
	p.Identity = c.identity
	var out protocol.ClaimResult
	sent, err = c.call(ctx, protocol.MethodClaim, p, &out, c.releaseLate)
	return out.Messages, sent, err
}

// releaseLate gives back the claims of an answer that nobody waits for.
func (c *Client) releaseLate(line protocol.Line) {
	var out protocol.ClaimResult
	if json.Unmarshal(line.Result, &out) != nil {
		return
	}
	for _, d := range out.Messages {
		_, _ = c.Release(context.Background(), d.ID, d.Token) // the connection's end ends it
	}
}

// Renew keeps a claim alive, and records progress where it is not nil. What
// remains counts from sent.
func (c *Client) Renew(ctx context.Context, id string, token protocol.Token, progress *string) (remaining time.Duration, sent time.Time, err error) {
	var out protocol.RenewResult
	sent, err = c.call(ctx, protocol.MethodRenew, protocol.RenewParams{Identity: c.identity, ID: id, Token: token, Progress: progress}, &out, nil)
	return time.Duration(out.RemainingMS) * time.Millisecond, sent, err
}

// Complete ends a claim with success; p.Next claims in the same call. When the
// answer is lost the call may be repeated: it succeeds without being done twice.
func (c *Client) Complete(ctx context.Context, p protocol.CompleteParams) (out protocol.CompleteResult, sent time.Time, err error) {
	p.Identity = c.identity
	var late func(protocol.Line)
	if p.Next != nil {
		late = c.releaseLate
	}
	sent, err = c.call(ctx, protocol.MethodComplete, p, &out, late)
	return out, sent, err
}

// Fail ends a claim without success.
func (c *Client) Fail(ctx context.Context, p protocol.FailParams) (out protocol.FailResult, err error) {
	p.Identity = c.identity
	_, err = c.call(ctx, protocol.MethodFail, p, &out, nil)
	return out, err
}

// Release gives a message back, uncharged.
func (c *Client) Release(ctx context.Context, id string, token protocol.Token) (out protocol.ReleaseResult, err error) {
	_, err = c.call(ctx, protocol.MethodRelease, protocol.ClaimRef{Identity: c.identity, ID: id, Token: token}, &out, nil)
	return out, err
}

// Settle ends several claims in one call. The outcomes are in the order of the
// items, each with an error of its own.
func (c *Client) Settle(ctx context.Context, items []protocol.SettleItem) ([]protocol.SettleOutcome, error) {
	var out protocol.SettleResult
	_, err := c.call(ctx, protocol.MethodSettle, protocol.SettleParams{Identity: c.identity, Items: items}, &out, nil)
	return out.Results, err
}

// Check returns nil while the claim is current, else the refusal.
func (c *Client) Check(ctx context.Context, id string, token protocol.Token) error {
	_, err := c.call(ctx, protocol.MethodCheck, protocol.ClaimRef{Identity: c.identity, ID: id, Token: token}, nil, nil)
	return err
}

// Send sends as the worker's actor. Where p.Claim is set the message is staged:
// it becomes visible when that claim completes.
func (c *Client) Send(ctx context.Context, p protocol.SendParams) (out protocol.SendResult, err error) {
	p.Identity = c.identity
	_, err = c.call(ctx, protocol.MethodSend, p, &out, nil)
	return out, err
}

// Ready tells the supervisor that the worker is ready (ready: {notify: true}).
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.call(ctx, protocol.MethodReady, protocol.ReadyParams{Identity: c.identity}, nil, nil)
	return err
}

// Ping is a sign of life for the watchdog, as is every other request.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.call(ctx, protocol.MethodPing, protocol.PingParams{Identity: c.identity}, nil, nil)
	return err
}
