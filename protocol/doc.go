// Package protocol is the wire: the requests, answers and notifications that
// workers and people exchange with the supervisor.
//
// It is JSON-RPC 2.0, one object a line, in UTF-8, at most 8 MiB each:
//
//	→ {"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"30s"}}
//	← {"jsonrpc":"2.0","id":1,"result":{"messages":[{"id":"m7","token":12, …}]}}
//	→ {"jsonrpc":"2.0","id":2,"method":"complete","params":{"id":"m7","token":12}}
//	← {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"…","data":{"category":"fencing_token_stale", …}}}
//	← {"jsonrpc":"2.0","method":"drain"}
//
// Each method has one Go struct for its params and one for its result
// (worker.go, control.go), with the names of docs/interface.md. The form is
// checked strictly where it means something: a value of the wrong type, a
// negative duration, a token that is no whole number below 2^53 and a batch are
// refused, bad_request, naming the field. Members that are not known are ignored,
// so that a newer client can speak to an older supervisor.
//
// Decoder and Encoder read and write the lines. A line beyond the limit is
// skipped whole and reported; the stream goes on.
package protocol
