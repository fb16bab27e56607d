package protocol

import "encoding/json"

// The two ways of reading, apart, for the tests that compare them.
var (
	ScanRequest = scanRequest
	ScanParams  = scanParams
	PlainLen    = plainLen
)

// JSONRequest reads a line with encoding/json alone.
func JSONRequest(line []byte) (Request, *Error) { return parseRequest(line) }

// JSONParams reads params with encoding/json alone.
func JSONParams(params json.RawMessage, out any) error { return json.Unmarshal(params, out) }

// AppendResponse writes an answer by hand, if it can.
func AppendResponse(r Response) ([]byte, bool) { return r.append(nil) }
