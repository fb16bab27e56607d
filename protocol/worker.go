package protocol

import (
	"encoding/json"
	"time"
)

// ClaimParams asks for work.
type ClaimParams struct {
	Identity
	Wait    Duration `json:"wait,omitzero"`     // 0: do not wait
	Max     int      `json:"max,omitempty"`     // 0: 1
	ID      string   `json:"id,omitempty"`      // that message only
	Request string   `json:"request,omitempty"` // repeated by the same process: the same claims again
}

// ClaimResult is the messages that were claimed, perhaps none.
type ClaimResult struct {
	Messages []Delivery `json:"messages"`
}

// A Delivery is one claimed message. RemainingMS counts from when the answer
// was written: a worker counts it from when it sent its request, which is
// earlier and so never too late. ExpiresAt is for people.
type Delivery struct {
	ID          string            `json:"id"`
	From        string            `json:"from"`
	Subject     string            `json:"subject"`
	Headers     map[string]string `json:"headers"`
	Body        Body              `json:"body"`
	Attempt     int               `json:"attempt"`
	Token       Token             `json:"token"`
	ExpiresAt   time.Time         `json:"expires_at"`
	RemainingMS int64             `json:"remaining_ms"`
}

// RenewParams keeps a claim alive.
type RenewParams struct {
	Identity
	ID       string  `json:"id"`
	Token    Token   `json:"token"`
	Progress *string `json:"progress,omitempty"` // nil: no news
}

// RenewResult is how long the claim lasts now.
type RenewResult struct {
	ExpiresAt   time.Time `json:"expires_at"`
	RemainingMS int64     `json:"remaining_ms"`
}

// CompleteParams ends a claim with success.
type CompleteParams struct {
	Identity
	ID     string     `json:"id"`
	Token  Token      `json:"token"`
	Result Body       `json:"result,omitempty"`
	Send   []Outgoing `json:"send,omitempty"` // staged whole or not at all
	Next   *Next      `json:"next,omitempty"` // claim in the same call
}

// Next asks for the next messages once a completion is done.
type Next struct {
	Wait Duration `json:"wait,omitzero"`
	Max  int      `json:"max,omitempty"` // 0: 1
}

// CompleteResult is the message's state, and what Next claimed: nil where it
// was not asked for. NextError says why the claim was refused although the
// completion stands.
type CompleteResult struct {
	State     MessageState `json:"state"`
	Messages  []Delivery   `json:"messages,omitzero"`
	NextError *Error       `json:"next_error,omitempty"`
}

// FailParams ends a claim without success.
type FailParams struct {
	Identity
	ID     string    `json:"id"`
	Token  Token     `json:"token"`
	Reason string    `json:"reason,omitempty"` // any bytes
	Delay  *Duration `json:"delay,omitempty"`  // instead of the actor's backoff
	Dead   bool      `json:"dead,omitempty"`   // do not try again
}

// FailResult is the message's state and its charged attempts.
type FailResult struct {
	State    MessageState `json:"state"`
	Attempts int          `json:"attempts"`
}

// ClaimRef names a claim: the params of release and check.
type ClaimRef struct {
	Identity
	ID    string `json:"id"`
	Token Token  `json:"token"`
}

// ReleaseResult is the message's state.
type ReleaseResult struct {
	State MessageState `json:"state"`
}

// SettleParams ends several claims in one call, each judged alone.
type SettleParams struct {
	Identity
	Items []SettleItem `json:"items"`
}

// SettleItems is SettleParams with the items unread, for who judges each by itself.
type SettleItems struct {
	Identity
	Items []json.RawMessage `json:"items"` // of SettleItem
}

// A SettleItem has exactly one field set.
type SettleItem struct {
	Complete *CompleteParams `json:"complete,omitempty"`
	Fail     *FailParams     `json:"fail,omitempty"`
	Release  *ClaimRef       `json:"release,omitempty"`
}

// SettleResult has one entry for each item, in their order.
type SettleResult struct {
	Results []SettleOutcome `json:"results"`
}

// A SettleOutcome is what the item's own method would have answered.
type SettleOutcome struct {
	State    MessageState `json:"state,omitempty"`
	Attempts *int         `json:"attempts,omitempty"` // of a fail
	Error    *Error       `json:"error,omitempty"`
}

// An Outgoing is a message that is to be sent. Only To is required.
type Outgoing struct {
	To       string            `json:"to"`
	Body     Body              `json:"body,omitempty"`
	Subject  string            `json:"subject,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Key      string            `json:"key,omitempty"` // idempotency key, per recipient
	KeyTTL   Duration          `json:"key_ttl,omitzero"`
	Delay    Duration          `json:"delay,omitzero"`
	At       time.Time         `json:"at,omitzero"` // instead of Delay
	Priority int               `json:"priority,omitempty"`
	Group    string            `json:"group,omitempty"`
	TTL      Duration          `json:"ttl,omitzero"`
}

// SendParams sends. From is read on control.sock only: a worker sends as its
// actor. Claim is read from workers only: the message is staged until that
// claim completes.
type SendParams struct {
	Identity
	Outgoing
	From  string    `json:"from,omitempty"`
	Claim *ClaimRef `json:"claim,omitempty"`
}

// SendResult names the message. Recipient says what keeps a recipient that is
// known from working on it now (paused, stopped, failed, removed); it is told
// on control.sock.
type SendResult struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Recipient string `json:"recipient,omitempty"`
}

// ReadyParams, PingParams carry nothing but who asks.
type (
	ReadyParams struct{ Identity }
	PingParams  struct{ Identity }
)

// ClaimLost tells a worker that a claim of its is no longer current.
type ClaimLost struct {
	ID     string `json:"id"`
	Token  Token  `json:"token"`
	Reason string `json:"reason"` // expired, cancelled or no_progress
}

// LeaseLost tells a worker to stop at once.
type LeaseLost struct {
	Reason string `json:"reason,omitempty"`
}
