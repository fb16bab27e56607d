package protocol_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"pgregory.net/rapid"
)

// Mistake 13: every token goes through a JSON number exactly, also through a
// program whose numbers are floating point; what is no token is not rounded to
// one.
func TestToken_Exact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		token := protocol.Token(rapid.Uint64Range(0, uint64(protocol.MaxToken)).Draw(rt, "token"))
		text, err := json.Marshal(token)
		if err != nil {
			rt.Fatal(err)
		}
		var float float64
		if err := json.Unmarshal(text, &float); err != nil || uint64(float) != uint64(token) {
			rt.Fatalf("%s as a float is %v", text, float)
		}
		for _, form := range []string{string(text), `"` + string(text) + `"`} {
			var back protocol.Token
			if err := json.Unmarshal([]byte(form), &back); err != nil || back != token {
				rt.Fatalf("%s came back as %d, %v", form, back, err)
			}
		}
	})
	for _, bad := range []string{`-1`, `-0`, `0.0`, `1.0`, `1e2`, `9007199254740992`, `99999999999999999999`, `"-1"`, `" 1"`, `"0x1"`, `"1e2"`, `true`, `{}`, `[]`, `"１"`} {
		token := protocol.Token(7)
		if err := json.Unmarshal([]byte(bad), &token); err == nil {
			t.Errorf("%s was read as %d", bad, token)
		}
	}
	for _, none := range []string{`0`, `""`, `null`} {
		var token protocol.Token
		if err := json.Unmarshal([]byte(none), &token); err != nil || token != 0 {
			t.Errorf("%s was read as %d, %v; want the zero token", none, token, err)
		}
	}
}

func TestDuration_Forms(t *testing.T) {
	for text, want := range map[string]time.Duration{`"10s"`: 10 * time.Second, `"1h30m"`: 90 * time.Minute, `"7d"`: 7 * 24 * time.Hour, `0`: 0, `"0"`: 0, `"0s"`: 0} {
		d := protocol.Duration(-1)
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Std() != want {
			t.Errorf("%s is %v, %v", text, d, err)
		}
	}
	for _, bad := range []string{`10`, `"10"`, `"-1s"`, `""`, `"soon"`, `"-7d"`, `"1.5d"`, `"999999999999d"`, `true`, `1.5`} {
		var d protocol.Duration
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was read as %v", bad, d)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		d := protocol.Duration(rapid.Int64Range(0, 1<<62).Draw(rt, "d"))
		text, err := json.Marshal(d)
		if err != nil {
			rt.Fatal(err)
		}
		var back protocol.Duration
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			rt.Fatalf("%s came back as %v, %v", text, back, err)
		}
	})
}

// A refusal goes over the wire and comes back whole.
func TestError_RoundTrip(t *testing.T) {
	in := refusal.New(refusal.InboxFull, "m", "w", "n").Later()
	text, err := json.Marshal(protocol.ErrorOf(in))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"code":-32000,"message":"m","data":{"category":"inbox_full","why":"w","next":"n","retryable":true}}`; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	var back protocol.Error
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !refusal.Has(&back, refusal.InboxFull) || *back.Refusal() != *in {
		t.Errorf("came back as %+v", back.Refusal())
	}
	if protocol.ErrorOf(nil) != nil || (*protocol.Error)(nil).Refusal() != nil {
		t.Error("no error became one")
	}
	if got := protocol.ErrorOf(errors.New("plain")); got.Data.Category != refusal.Failed {
		t.Errorf("a plain error has category %s", got.Data.Category)
	}
}

// The names on the wire are those of docs/interface.md.
func TestNames(t *testing.T) {
	for text, v := range map[string]any{
		`{"process":"p","lease_token":3,"id":"m1","token":5,"result":"r","send":[{"to":"a","body":"b","delay":"1s"}],"next":{"wait":"2s","max":4}}`: protocol.CompleteParams{
			Identity: protocol.Identity{Process: "p", LeaseToken: 3}, ID: "m1", Token: 5, Result: protocol.Body("r"),
			Send: []protocol.Outgoing{{To: "a", Body: protocol.Body("b"), Delay: protocol.Duration(time.Second)}}, Next: &protocol.Next{Wait: protocol.Duration(2 * time.Second), Max: 4}},
		`{"state":"DONE"}`:               protocol.CompleteResult{State: "DONE"},
		`{"state":"DONE","messages":[]}`: protocol.CompleteResult{State: "DONE", Messages: []protocol.Delivery{}},
		`{"id":"m1","token":2}`:          protocol.ClaimRef{ID: "m1", Token: 2},
		`{"id":"m1"}`:                    protocol.SendResult{ID: "m1"},
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":{"category":"","why":"","next":"","retryable":false}}}`: protocol.Response{JSONRPC: "2.0", Error: &protocol.Error{Code: 1, Message: "m"}},
		`{"jsonrpc":"2.0","id":7,"result":{}}`: protocol.Response{JSONRPC: "2.0", ID: "7", Result: protocol.Empty{}},
		`{"jsonrpc":"2.0","method":"drain"}`:   protocol.Notification{JSONRPC: "2.0", Method: "drain"},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != text {
			t.Errorf("got  %s (%v)\nwant %s", got, err, text)
		}
	}
	text, err := json.Marshal(protocol.Message{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "to", "from", "subject", "headers", "state", "priority", "group", "attempt", "attempts", "max_attempts", "size", "created_at", "available_at"} {
		if !strings.Contains(string(text), `"`+name+`":`) {
			t.Errorf("a message has no %s", name)
		}
	}
}
