// Package protocol is the wire: the requests, answers and notifications that
// workers and people exchange with the supervisor, as JSON-RPC 2.0, one object
// a line.
package protocol
