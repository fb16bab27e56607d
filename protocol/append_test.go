package protocol_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"pgregory.net/rapid"
)

// An answer written by hand is what encoding/json writes, byte for byte, but for
// the escapes of two control characters, which mean the same.
func TestAppend_AgreesWithJSON(t *testing.T) { rapid.Check(t, appendAgreesWithJSON) }

func FuzzAppend_AgreesWithJSON(f *testing.F) { f.Fuzz(rapid.MakeFuzz(appendAgreesWithJSON)) }

func appendAgreesWithJSON(t *rapid.T) {
	answer := drawResponse(t)
	got, ok := protocol.AppendResponse(answer)
	if !ok {
		t.Fatalf("%+v is left to encoding/json", answer)
	}
	var want bytes.Buffer
	js := json.NewEncoder(&want)
	js.SetEscapeHTML(false)
	if err := js.Encode(answer); err != nil {
		t.Fatal(err)
	}
	same := strings.NewReplacer(`\\`, `\\`, `\b`, `\u0008`, `\f`, `\u000c`)
	if string(got)+"\n" != same.Replace(want.String()) {
		t.Fatalf("got  %s\nwant %s", got, want.String())
	}
}

func drawResponse(t *rapid.T) protocol.Response {
	raw := rapid.OneOf(rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.String(), rapid.SampledFrom([]string{"", "DONE", "\u2028\u2029<&>\x7f"}))
	wrong := func() *protocol.Error {
		var problems []protocol.ConfigProblem
		for range rapid.IntRange(0, 2).Draw(t, "problems") {
			problems = append(problems, protocol.ConfigProblem{Path: raw.Draw(t, "path"), Line: rapid.Int().Draw(t, "line"),
				Column: rapid.Int().Draw(t, "column"), Message: raw.Draw(t, "problem")})
		}
		return &protocol.Error{Code: rapid.Int().Draw(t, "code"), Message: raw.Draw(t, "message"), Data: protocol.ErrorData{
			Category: refusal.Category(raw.Draw(t, "category")), Why: raw.Draw(t, "why"), Next: raw.Draw(t, "next"), Retryable: rapid.Bool().Draw(t, "retryable"), Problems: problems}}
	}
	at := func() time.Time {
		return time.Unix(rapid.Int64Range(-1<<35, 1<<36).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).In(
			rapid.SampledFrom([]*time.Location{time.UTC, time.FixedZone("", 90*60)}).Draw(t, "zone"))
	}
	deliveries := func() []protocol.Delivery {
		n := rapid.IntRange(-1, 3).Draw(t, "n")
		if n < 0 {
			return nil
		}
		out := make([]protocol.Delivery, n)
		for i := range out {
			out[i] = protocol.Delivery{ID: raw.Draw(t, "id"), From: raw.Draw(t, "from"), Subject: raw.Draw(t, "subject"),
				Headers: rapid.OneOf(rapid.MapOfN(raw, raw, 0, 3), rapid.Just(map[string]string(nil))).Draw(t, "headers"), Body: protocol.Body(raw.Draw(t, "body")),
				Attempt: rapid.Int().Draw(t, "attempt"), Token: token(t), ExpiresAt: at(), RemainingMS: rapid.Int64().Draw(t, "remaining")}
		}
		return out
	}
	r := protocol.Response{JSONRPC: "2.0", ID: rapid.SampledFrom([]protocol.ID{"", "null", "7", "-1.5e3", `"a\u00e9\""`}).Draw(t, "id")}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		r.Error = wrong()
	case 1:
		r.Result = protocol.ClaimResult{Messages: deliveries()}
	case 2:
		done := protocol.CompleteResult{State: protocol.MessageState(raw.Draw(t, "state")), Messages: deliveries()}
		if rapid.Bool().Draw(t, "refused") {
			done.NextError = wrong()
		}
		r.Result = done
	case 3:
		r.Result = protocol.FailResult{State: protocol.MessageState(raw.Draw(t, "state")), Attempts: rapid.Int().Draw(t, "attempts")}
	case 4:
		r.Result = protocol.ReleaseResult{State: protocol.MessageState(raw.Draw(t, "state"))}
	case 5:
		r.Result = protocol.RenewResult{ExpiresAt: at(), RemainingMS: rapid.Int64().Draw(t, "remaining")}
	case 6:
		r.Result = protocol.SendResult{ID: raw.Draw(t, "id"), Duplicate: rapid.Bool().Draw(t, "duplicate"), Recipient: raw.Draw(t, "recipient")}
	default:
		r.Result = protocol.Empty{}
	}
	return r
}

// A result of any other type, and a time that has no form, are left to
// encoding/json, the error included.
func TestAppend_LeavesTheRest(t *testing.T) {
	for _, result := range []any{protocol.Status{}, 7, protocol.RenewResult{ExpiresAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		answer := protocol.Response{JSONRPC: "2.0", ID: "1", Result: result}
		if got, ok := protocol.AppendResponse(answer); ok {
			t.Errorf("%v was written as %s", reflect.TypeOf(result), got)
		}
		_, want := json.Marshal(answer)
		var out bytes.Buffer
		if err := protocol.NewEncoder(&out).Encode(answer); (err == nil) != (want == nil) || (err == nil) != (out.Len() > 0) {
			t.Errorf("%v: %v and %d bytes, want %v", reflect.TypeOf(result), err, out.Len(), want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	body := protocol.Body(strings.Repeat("a line of text, as bodies are\n", 34))
	for name, result := range map[string]any{"send": protocol.SendResult{ID: "m7"},
		"renew":  protocol.RenewResult{ExpiresAt: time.Now().UTC(), RemainingMS: 1},
		"settle": protocol.SettleResult{Results: []protocol.SettleOutcome{{State: "DONE"}, {State: "DONE"}}}, "complete": protocol.CompleteResult{State: "DONE"},
		"claim": protocol.ClaimResult{Messages: []protocol.Delivery{{ID: "m7", Headers: map[string]string{}, Body: body, Attempt: 1, Token: 12, ExpiresAt: time.Now().UTC(), RemainingMS: 1}}}} {
		b.Run(name, func(b *testing.B) {
			out := protocol.NewEncoder(&discard{})
			b.ReportAllocs()
			for b.Loop() {
				if err := out.Encode(&protocol.Response{JSONRPC: "2.0", ID: "1", Result: result}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+" by encoding/json", func(b *testing.B) {
			js := json.NewEncoder(&discard{})
			js.SetEscapeHTML(false)
			b.ReportAllocs()
			for b.Loop() {
				if err := js.Encode(&protocol.Response{JSONRPC: "2.0", ID: "1", Result: result}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard is a writer of its own type, so that no way around Write is taken.
type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
