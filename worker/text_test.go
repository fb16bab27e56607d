package worker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Text that is not UTF-8 does not leave the worker: as JSON it would be another one,
// two keys would become one, and the second message would be lost. Leave out checkText
// and this fails, since the request would wait for an answer of a supervisor.
func TestClient_RefusesTextThatIsNotUTF8(t *testing.T) {
	c, _ := newScript(t)
	const bad = "k\xff"
	send := func(o protocol.Outgoing) error {
		_, err := c.Send(t.Context(), protocol.SendParams{Outgoing: o})
		return err
	}
	complete := func(o protocol.Outgoing) error {
		_, _, err := c.Complete(t.Context(), protocol.CompleteParams{ID: "m1", Token: 1, Send: []protocol.Outgoing{{To: "a"}, o}})
		return err
	}
	_, settle := c.Settle(t.Context(), []protocol.SettleItem{{Complete: &protocol.CompleteParams{Send: []protocol.Outgoing{{Key: bad}}}}})
	_, _, claim := c.Claim(t.Context(), protocol.ClaimParams{Request: bad})
	_, await := c.Await(t.Context(), bad)
	_, call := c.Call(t.Context(), protocol.Outgoing{To: "a", Key: bad})
	for name, got := range map[string]struct {
		err   error
		names string
	}{
		"to":              {send(protocol.Outgoing{To: bad}), "to"},
		"key":             {send(protocol.Outgoing{To: "a", Key: bad}), "key"},
		"group":           {send(protocol.Outgoing{To: "a", Group: bad}), "group"},
		"subject":         {send(protocol.Outgoing{To: "a", Subject: bad}), "subject"},
		"header":          {send(protocol.Outgoing{To: "a", Headers: map[string]string{"x": bad}}), "headers x"},
		"header name":     {send(protocol.Outgoing{To: "a", Headers: map[string]string{bad: "x"}}), "a name of headers"},
		"of a completion": {complete(protocol.Outgoing{To: "a", Key: bad}), "key (number 2 of send)"},
		"of a settle":     {settle, "key"},
		"request":         {claim, "request"},
		"id":              {await, "id"},
		"of a call":       {call, "key"},
	} {
		if !refusal.Has(got.err, refusal.BadRequest) || !strings.Contains(got.err.Error(), got.names+" ") || strings.Contains(got.err.Error(), bad) {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}

// What is for people goes out whatever it holds, and a body as it is.
func TestClient_SendsReasonsAndBodiesWhateverTheyHold(t *testing.T) {
	c, s := newScript(t)
	const bad = "\xff"
	progress := bad
	go func() {
		_, _ = c.Fail(t.Context(), protocol.FailParams{ID: "m1", Token: 1, Reason: bad})
		_, _, _ = c.Renew(t.Context(), "m1", 1, &progress)
		_, _ = c.Send(t.Context(), protocol.SendParams{Outgoing: protocol.Outgoing{To: "a", Body: protocol.Body(bad)}})
	}()
	for _, method := range []string{protocol.MethodFail, protocol.MethodRenew} {
		s.answer(s.want(method), protocol.Empty{})
	}
	req := s.want(protocol.MethodSend)
	var p protocol.SendParams
	if err := json.Unmarshal(req.Params, &p); err != nil || string(p.Body) != bad {
		t.Errorf("body %q, %v", p.Body, err)
	}
	s.answer(req, protocol.SendResult{ID: "m2"})
}
