package protocol

import "time"

// A Message is one message as people see it.
type Message struct {
	ID          string            `json:"id"`
	To          string            `json:"to"`
	From        string            `json:"from"`
	Subject     string            `json:"subject"`
	Headers     map[string]string `json:"headers"`
	State       MessageState      `json:"state"`
	Priority    int               `json:"priority"`
	Group       string            `json:"group"`
	Key         string            `json:"key,omitempty"`
	Attempt     int               `json:"attempt"`
	Attempts    int               `json:"attempts"`
	MaxAttempts int               `json:"max_attempts"`
	Size        int               `json:"size"`
	CreatedAt   time.Time         `json:"created_at"`
	AvailableAt time.Time         `json:"available_at"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"` // end of its ttl: not claimed by then it is DEAD
	EndedAt     time.Time         `json:"ended_at,omitzero"`
	Claim       *Claim            `json:"claim,omitempty"`
	LastFailure *LastFailure      `json:"last_failure,omitempty"`
}

// A Claim is who works on a message.
type Claim struct {
	Process     string    `json:"process"` // shortened
	Slot        int       `json:"slot"`
	Token       Token     `json:"token"`
	LeaseToken  Token     `json:"lease_token"`
	ExpiresAt   time.Time `json:"expires_at"`
	RemainingMS int64     `json:"remaining_ms"`
	Progress    string    `json:"progress,omitempty"`
}

// LastFailure is how the last failed attempt ended.
type LastFailure struct {
	Category string    `json:"category"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
}

// A MessageDetail is a message with all that is known of it. Bodies and results that
// are no text (IsText) are in the field with the name's _base64.
type MessageDetail struct {
	Message
	Body            *string   `json:"body,omitempty"`
	BodyBase64      []byte    `json:"body_base64,omitempty"`
	Result          *string   `json:"result,omitempty"`
	ResultBase64    []byte    `json:"result_base64,omitempty"`
	ResultTruncated bool      `json:"result_truncated,omitempty"`
	Why             string    `json:"why"`                        // why it is not running
	Poison          string    `json:"poison,omitempty"`           // that it seems to kill those who work on it
	BlockedBy       string    `json:"blocked_by,omitempty"`       // the message of its group that comes first
	Receipts        []Receipt `json:"receipts"`                   // of the last attempts, in their order
	Omitted         int       `json:"receipts_omitted,omitempty"` // attempts before those, whose receipts are left out
	TTL             Duration  `json:"ttl,omitzero"`               // with which it was sent
	KeyExpiresAt    time.Time `json:"key_expires_at,omitzero"`    // until then it holds its key; zero: as long as it exists
	KeyFree         bool      `json:"key_free,omitempty"`         // it has a key, and holds it no more
}

// A Receipt is how one attempt ended.
type Receipt struct {
	Attempt    int       `json:"attempt"`
	Token      Token     `json:"token"`
	LeaseToken Token     `json:"lease_token"`
	Process    string    `json:"process"` // shortened
	Actor      string    `json:"actor"`
	Slot       int       `json:"slot"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	Status     string    `json:"status"` // completed, failed, released
	Category   string    `json:"category"`
	Counted    bool      `json:"counted"`
	ByWorker   bool      `json:"by_worker"`
	Reason     string    `json:"reason"`
	ExitCode   *int      `json:"exit_code"`
	Signal     string    `json:"signal"`
}
