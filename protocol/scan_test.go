package protocol_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/protocol"
	"pgregory.net/rapid"
)

// scanned are the params that the scanner reads.
func scanned() []any {
	return []any{&protocol.ClaimParams{}, &protocol.CompleteParams{}, &protocol.SendParams{}, &protocol.RenewParams{}, &protocol.FailParams{},
		&protocol.ClaimRef{}, &protocol.SettleItems{}, &protocol.SettleItem{}, &protocol.PingParams{}}
}

// agree fails unless what the scanner accepts is what encoding/json reads, to the
// last value, for a line and for each kind of params. It returns how many the
// scanner accepted.
func agree(t testing.TB, text []byte) (accepted int) {
	t.Helper()
	if len(text) == 0 {
		return 0
	}
	params := json.RawMessage(text)
	if req, ok := protocol.ScanRequest(text); ok {
		accepted++
		want, wrong := protocol.JSONRequest(text)
		if wrong != nil || !reflect.DeepEqual(req, want) {
			t.Fatalf("%q was read as %+v, encoding/json reads %+v, %v", text, req, want, wrong)
		}
		params = req.Params
	}
	if len(params) == 0 {
		return accepted
	}
	for i, got := range scanned() {
		if !protocol.ScanParams(params, got) {
			if !reflect.ValueOf(got).Elem().IsZero() {
				t.Fatalf("%q was not read and left %+v", params, got)
			}
			continue
		}
		accepted++
		want := scanned()[i]
		if err := protocol.JSONParams(params, want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q was read as %+v, encoding/json reads %+v, %v", params, got, want, err)
		}
	}
	return accepted
}

// Whatever the bytes are, the scanner reads them as encoding/json does or leaves
// them to it.
func FuzzScan_AgreesWithJSON(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"30s","max":2,"request":"r"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"complete","process":"p","lease_token":"7","params":{"id":"m1","token":3,"result":"\u00e9\ud83d\ude00","send":[{"to":"x"}],"next":{"wait":"1s"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"a","body":{"base64":"AAEC/w=="},"headers":{"a":"b","a":"c"},"at":"2026-01-02T03:04:05Z","priority":-3,"claim":{"id":"m1","token":3}}}`,
		`{"items":[{"complete":{"id":"m1","token":1}},{"fail":{"id":"m1","token":1,"reason":"x","delay":"1s","dead":true}},{"release":{"id":"m1","token":2}},[{"a":[1,-2]}]]}`,
		`{"complete":{"id":"m1","token":1,"send":[]}}`, `{"id":"m1","token":2,"progress":"\"\\\/\b\f\n\r\t"}`,
		`{"ID":"m1","id":"m2"}`, `{"id":"m1","id":"m2"}`, `{"id":null}`, `{"token":01}`, `{"token":1.0}`, `{"token":1e3}`, `{"token":"01"}`, `{"max":-0}`, `{"max":99999999999999999999}`,
		`{"result":"\ud800"}`, `{"result":"\udc00x"}`, `{"result":"\ufffd\ud800"}`, "{\"result\":\"\xff\"}", "{\"reason\":\"\xff\"}", "{\"result\":\"\uFFFD\"}", `{"reason":"\u12"}`, `{"reason":"\x"}`, "{\"reason\":\"a\tb\"}",
		`{"body":{"base64":"A\nA=="}}`, `{"body":{"base64":"AA==","x":1}}`, `{"body":{}}`, `{"body":{"Base64":"AA=="}}`, `{"at":"2026-01-02"}`, `{"wait":0}`, `{"wait":"-1s"}`, `{"wait":"7d"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `{"jsonrpc":"2.0","id":-,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping",}`, `{"a":[1,]}`, `{"k":"v"]`, `{`, `{}`, `[]`, "\u2028", "{\"result\":\"\x7f\u2028\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agree(t, text) })
}

// What clients write, as Go and as other languages write JSON, is read by the
// scanner itself. Have it refuse an escape, or white space, and this fails.
func TestScan_ReadsWhatClientsWrite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		params := drawParams(rt)
		text, err := json.Marshal(params)
		if err != nil {
			rt.Fatal(err)
		}
		method, id := rapid.SampledFrom([]string{"send", "complete", "other"}).Draw(rt, "method"), rapid.Int().Draw(rt, "id")%1e16
		line := []byte(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"` + method + `","params":` + string(text) + `,"process":"p","lease_token":12}`)
		if rapid.Bool().Draw(rt, "ascii") {
			line = asciiOnly(line)
		}
		if rapid.Bool().Draw(rt, "spaces") {
			var spaced bytes.Buffer
			if err := json.Indent(&spaced, line, "", "\t"); err != nil {
				rt.Fatal(err)
			}
			line = spaced.Bytes()
		}
		req, ok := protocol.ScanRequest(line)
		if !ok || !protocol.ScanParams(req.Params, reflect.New(reflect.TypeOf(params)).Interface()) {
			rt.Fatalf("%s is left to encoding/json", line)
		}
		if agree(t, line) < 2 {
			rt.Fatalf("%s is not compared", line)
		}
	})
}

func drawParams(rt *rapid.T) any {
	who := protocol.Identity{Process: text(rt), LeaseToken: token(rt)}
	span := func() protocol.Duration {
		return protocol.Duration(rapid.Int64Range(0, 1<<50).Draw(rt, "span"))
	}
	out := func() protocol.Outgoing {
		o := protocol.Outgoing{To: text(rt), Body: rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes"), Subject: text(rt), Key: text(rt), KeyTTL: span(),
			Delay: span(), Priority: rapid.IntRange(-100, 100).Draw(rt, "priority"), Group: text(rt), TTL: span()}
		if rapid.Bool().Draw(rt, "more") {
			o.Body, o.At = protocol.Body(text(rt)), time.Unix(rapid.Int64Range(1, 1<<32).Draw(rt, "at"), 5).UTC()
			o.Headers = map[string]string{text(rt): text(rt), text(rt): text(rt)}
		}
		return o
	}
	ref := protocol.ClaimRef{Identity: who, ID: text(rt), Token: token(rt)}
	switch rapid.IntRange(0, 7).Draw(rt, "kind") {
	case 0:
		return protocol.ClaimParams{Identity: who, Wait: span(), Max: rapid.IntRange(-5, 1e9).Draw(rt, "max"), ID: text(rt), Request: text(rt)}
	case 1:
		next := protocol.Next{Wait: span(), Max: 3}
		return protocol.CompleteParams{ID: text(rt), Token: token(rt), Result: protocol.Body(text(rt)), Send: []protocol.Outgoing{out(), out()}, Next: &next}
	case 2:
		return protocol.SendParams{Identity: who, Outgoing: out(), From: text(rt), Claim: &ref}
	case 3:
		progress := text(rt)
		return protocol.RenewParams{ID: text(rt), Token: token(rt), Progress: &progress}
	case 4:
		delay := span()
		return protocol.FailParams{ID: text(rt), Token: token(rt), Reason: text(rt), Delay: &delay, Dead: rapid.Bool().Draw(rt, "dead")}
	case 5:
		return ref
	case 6:
		return protocol.PingParams{Identity: who}
	default:
		return protocol.SettleItem{Complete: &protocol.CompleteParams{ID: text(rt), Token: token(rt)}, Release: &ref}
	}
}

func text(rt *rapid.T) string {
	return rapid.OneOf(rapid.StringN(0, 20, -1), rapid.StringMatching(`[ -~\n]{0,40}`), rapid.SampledFrom([]string{"x", "😀", "\u2028", "a\uFFFDb"})).Draw(rt, "text")
}

func token(rt *rapid.T) protocol.Token {
	return protocol.Token(rapid.Uint64Range(0, uint64(protocol.MaxToken)).Draw(rt, "token"))
}

// asciiOnly escapes everything else, with pairs of surrogates, as Python does.
func asciiOnly(line []byte) []byte {
	var out []byte
	for _, r := range string(line) {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r < 0x10000:
			out = append(out, `\u`+hex(r)...)
		default:
			a, b := utf16.EncodeRune(r)
			out = append(out, `\u`+hex(a)+`\u`+hex(b)...)
		}
	}
	return out
}

func hex(r rune) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", 4-len(s)) + s
}

// Looking at eight bytes at a time finds what looking at each does.
func TestScan_PlainLen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.ByteRange(' ', '~'), rapid.SampledFrom([]byte{0, 0x1f, ' ', '!', '"', '#', '[', '\\', ']', 0x7f, 0x80, 0x9f, 0xa0, 0xff})), 0, 40).Draw(rt, "b")
		want := 0
		for want < len(b) && b[want] >= ' ' && b[want] < 0x80 && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := protocol.PlainLen(b); got != want {
			rt.Fatalf("%q: %d, want %d", b, got, want)
		}
	})
}

func parseInto[P any](req protocol.Request) error {
	var p P
	return protocol.ParseParams(req.Method, req.Params, &p)
}

func BenchmarkParse(b *testing.B) {
	body, err := json.Marshal(strings.Repeat("a line of text, as bodies are\n", 34))
	if err != nil {
		b.Fatal(err)
	}
	const who = `"process":"0123456789abcdef0123456789abcdef","lease_token":12,`
	for name, params := range map[string]string{"send": `{` + who + `"to":"work","body":` + string(body) + `}`,
		"claim": `{` + who + `"wait":"1h"}`, "complete": `{` + who + `"id":"m7","token":12}`,
		"renew": `{` + who + `"id":"m7","token":12,"progress":"half"}`} {
		line := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + name + `","params":` + params + `}`)
		parse := map[string]func(protocol.Request) error{"send": parseInto[protocol.SendParams], "claim": parseInto[protocol.ClaimParams],
			"complete": parseInto[protocol.CompleteParams], "renew": parseInto[protocol.RenewParams]}[name]
		out := map[string]func() any{"send": func() any { return new(protocol.SendParams) }, "claim": func() any { return new(protocol.ClaimParams) },
			"complete": func() any { return new(protocol.CompleteParams) }, "renew": func() any { return new(protocol.RenewParams) }}[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, wrong := protocol.ParseRequest(line)
				if wrong != nil || parse(req) != nil {
					b.Fatal("not read")
				}
			}
		})
		b.Run(name+" by encoding/json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, wrong := protocol.JSONRequest(line)
				if wrong != nil || protocol.JSONParams(req.Params, out()) != nil {
					b.Fatal("not read")
				}
			}
		})
	}
}
