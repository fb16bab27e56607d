package protocol

import "encoding/json"

// A Request is one call. Without an id it is a notification, which only ready
// and ping may be. Process and LeaseToken are read here as well as in the
// params, for clients that send the same params on fd 3 and on worker.sock.
type Request struct {
	JSONRPC    string          `json:"jsonrpc"` // "2.0"
	ID         ID              `json:"id,omitzero"`
	Method     string          `json:"method"`
	Params     json.RawMessage `json:"params,omitempty"`
	Process    string          `json:"process,omitempty"`
	LeaseToken Token           `json:"lease_token,omitempty"`
}

// A Response is the answer to the request of the same id: Result or Error,
// never both.
type Response struct {
	JSONRPC string `json:"jsonrpc"`
	ID      ID     `json:"id"`
	Result  any    `json:"result,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// A Notification is a line to a worker that is not answered.
type Notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// A Line is any line as the client's end reads it: an answer where Method is
// empty, a notification otherwise.
type Line struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      ID              `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *Error          `json:"error"`
}

// Identity is what a worker's request on worker.sock carries beside its
// params. On fd 3 the channel itself is the identity; there it may be left out,
// and where given it must be the channel's.
type Identity struct {
	Process    string `json:"process,omitempty"`
	LeaseToken Token  `json:"lease_token,omitempty"`
}

// Empty is a result that says no more than yes.
type Empty struct{}
