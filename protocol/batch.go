package protocol

import "time"

// MethodSendBatch sends several messages, all or none, on control.sock.
const MethodSendBatch = "send.batch"

// NotifyProgress tells, ahead of the answer to send.batch, how far it has come.
const NotifyProgress = "progress"

// MethodInboxImport writes messages as inbox export wrote them, on control.sock.
const MethodInboxImport = "inbox.import"

// SendBatchParams are the messages of a batch.
type SendBatchParams struct {
	Messages []BatchMessage `json:"messages"`
}

// A BatchMessage is one message of a batch. Line says where it was read, for errors;
// 0 is its place in the batch.
type BatchMessage struct {
	Outgoing
	From string `json:"from,omitempty"`
	Line int    `json:"line,omitempty"`
}

// SendBatchResult has one entry for each message, in their order.
type SendBatchResult struct {
	Messages []SendResult `json:"messages"`
}

// Progress is how many of all are done.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// An ExportedMessage is one line of inbox export.
type ExportedMessage struct {
	ID          string            `json:"id"`
	To          string            `json:"to"`
	From        string            `json:"from,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	State       MessageState      `json:"state"`
	Body        Body              `json:"body,omitempty"`
	Result      Body              `json:"result,omitempty"`
	Truncated   bool              `json:"result_truncated,omitempty"`
	Key         string            `json:"key,omitempty"`
	KeyExpires  time.Time         `json:"key_expires_at,omitzero"` // until then it holds its key; zero: as long as it exists
	KeyFree     bool              `json:"key_free,omitempty"`      // it holds its key no more
	Priority    int               `json:"priority,omitempty"`
	Group       string            `json:"group,omitempty"`
	CreatedAt   time.Time         `json:"created_at,omitzero"`
	AvailableAt time.Time         `json:"available_at,omitzero"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"` // end of its ttl
	TTL         Duration          `json:"ttl,omitzero"`
	EndedAt     time.Time         `json:"ended_at,omitzero"`
	Attempt     int               `json:"attempt,omitempty"`
	Attempts    int               `json:"attempts,omitempty"`
	LastFailure *LastFailure      `json:"last_failure,omitempty"`
	Line        int               `json:"line,omitempty"` // of the file that is imported
}

// HeaderImportedID is the header of an imported message that holds the id that it had.
const HeaderImportedID = "imported-id"

// InboxImportParams are messages to be imported, in their order.
type InboxImportParams struct {
	Messages []ExportedMessage `json:"messages"`
}

// InboxImported has the ids of those that are durable, in their order: all, or those
// before the first that was refused, and why that was. Line is that one's, as the params
// have it; 0 where what went wrong is none's fault.
type InboxImported struct {
	Messages []SendResult `json:"messages"`
	Error    *Error       `json:"error,omitempty"`
	Line     int          `json:"line,omitempty"`
}
