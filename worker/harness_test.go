package worker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker"
)

// A script is the supervisor's end of a connection in memory, played by the test,
// for what no real supervisor does on demand: answers that are late or lost.
// The real one is tested against in real_test.go.
type script struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newScript(t *testing.T) (*worker.Client, *script) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := worker.NewClient(ours, protocol.Identity{})
	t.Cleanup(func() { _ = theirs.Close(); _ = c.Close() })
	return c, &script{t: t, conn: theirs, r: bufio.NewReader(theirs)}
}

func (s *script) read() protocol.Request {
	s.t.Helper()
	text, err := s.r.ReadBytes('\n')
	if err != nil {
		s.t.Fatalf("the worker sent nothing more: %v", err)
	}
	req, wrong := protocol.ParseRequest(text)
	if wrong != nil {
		s.t.Fatalf("the worker sent %s: %v", text, wrong)
	}
	return req
}

// want reads a request of the method.
func (s *script) want(method string) protocol.Request {
	s.t.Helper()
	req := s.read()
	if req.Method != method {
		s.t.Fatalf("the worker asked %s %s, want %s", req.Method, req.Params, method)
	}
	return req
}

func (s *script) write(v any) {
	s.t.Helper()
	if err := protocol.NewEncoder(s.conn).Encode(v); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) answer(req protocol.Request, result any) {
	s.t.Helper()
	s.write(protocol.Response{JSONRPC: "2.0", ID: req.ID, Result: result})
}

func (s *script) refuse(req protocol.Request, c refusal.Category) {
	s.t.Helper()
	s.write(protocol.Response{JSONRPC: "2.0", ID: req.ID, Error: protocol.ErrorOf(refusal.New(c, "refused", "by the test", ""))})
}

func (s *script) notify(method string, params any) {
	s.t.Helper()
	s.write(protocol.Notification{JSONRPC: "2.0", Method: method, Params: params})
}

// begin answers the worker's ready and its first claim.
func (s *script) begin(messages ...protocol.Delivery) {
	s.t.Helper()
	s.answer(s.want("ready"), protocol.Empty{})
	s.answer(s.want("claim"), protocol.ClaimResult{Messages: messages})
}

func message(n int, remainingMS int64) protocol.Delivery {
	return protocol.Delivery{ID: fmt.Sprintf("m%d", n), Body: protocol.Body("b"), Attempt: 1, Token: protocol.Token(n), RemainingMS: remainingMS}
}

func params[T any](t *testing.T, req protocol.Request) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(req.Params, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
