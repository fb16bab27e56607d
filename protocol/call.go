package protocol

// The headers of asynchronous replies: who asks names the actor to which the answer
// is sent, and a text of its own by which it knows it again; without that the answer
// names the id of the message that it answers.
const (
	HeaderReplyTo       = "reply-to"
	HeaderCorrelationID = "correlation-id"
)

// WorkerAwaitParams is await of a worker: it waits for the end of a message that its
// actor sent, at most Timeout; 0 is for ever.
type WorkerAwaitParams struct {
	Identity
	ID      string   `json:"id"`
	Timeout Duration `json:"timeout,omitzero"`
}

// Awaited is how a message stands once it has ended, or the time is up. A message
// that was removed is Gone; the rest is then what was known of it.
type Awaited struct {
	ID              string       `json:"id"`
	State           MessageState `json:"state,omitempty"`
	Gone            bool         `json:"gone,omitempty"`
	Result          Body         `json:"result,omitempty"`
	ResultTruncated bool         `json:"result_truncated,omitempty"`
	LastFailure     *LastFailure `json:"last_failure,omitempty"`
	Receipt         *Receipt     `json:"receipt,omitempty"` // of the last attempt that has ended
}
