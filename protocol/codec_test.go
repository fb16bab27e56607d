package protocol_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/protocol"
	"pgregory.net/rapid"
)

// lines reads everything; a line that is too long is "!".
func lines(t *testing.T, r io.Reader) []string {
	t.Helper()
	d := protocol.NewDecoder(r)
	var out []string
	for {
		line, err := d.Line()
		switch {
		case errors.Is(err, protocol.ErrLineTooLong):
			out = append(out, "!")
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, string(line))
		}
	}
}

// However the bytes arrive, the lines are those between the newlines, blank ones
// left out.
func TestDecoder_Lines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-z{}" ]{0,40}`), 0, 20).Draw(rt, "lines")
		repeat := rapid.SampledFrom([]int{1, 1000, 2000}).Draw(rt, "repeat")
		end := rapid.SampledFrom([]string{"\n", "\r\n", ""}).Draw(rt, "end")
		var want []string
		for i := range texts {
			texts[i] = strings.Repeat(texts[i], repeat)
			if s := strings.TrimSpace(texts[i]); s != "" {
				want = append(want, s)
			}
		}
		in := strings.Join(texts, "\n") + end
		for _, r := range []io.Reader{strings.NewReader(in), iotest.HalfReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			if got := lines(t, r); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				rt.Fatalf("got %d lines, want %d", len(got), len(want))
			}
		}
	})
}

// A line of exactly the limit is read, one byte more is not; what follows is
// read in both cases, and an end of file is no way around the limit.
func TestDecoder_Limit(t *testing.T) {
	exact, over := strings.Repeat("x", protocol.MaxLine), strings.Repeat("y", protocol.MaxLine+1)
	for in, want := range map[string][]string{
		exact + "\nnext\n":                     {exact, "next"},
		over + "\nnext\n":                      {"!", "next"},
		over + over + "\n" + over + "\nnext\n": {"!", "!", "next"},
		exact:                                  {exact},
		over:                                   {"!"},
		"a\n" + over:                           {"a", "!"},
	} {
		got := lines(t, strings.NewReader(in))
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%d bytes: got %d lines", len(in), len(got))
		}
	}
}

// Any bytes at all: no panic, no line beyond the limit, and the request after
// them is read (a line that is no JSON harms nobody else).
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{"", "\n", "{}\n", "\x00\n\xff", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, strings.Repeat("[", 20_000), "[1]\n",
		`{"jsonrpc":"2.0","id":null,"method":"m","params":{"token":-1}}`, `{"id":{}}`, "\"\\ud800\"", `{"jsonrpc":"2.0","id":1e999,"method":"x","lease_token":1}`} {
		f.Add([]byte(s))
	}
	const last = `{"jsonrpc":"2.0","id":"last","method":"ping"}`
	f.Fuzz(func(t *testing.T, garbage []byte) {
		in := append(append(bytes.Clone(garbage), '\n'), last...)
		d := protocol.NewDecoder(bytes.NewReader(in))
		var req protocol.Request
		for {
			line, err := d.Line()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var wrong *protocol.Error
			req, wrong = protocol.ParseRequest(line)
			var out bytes.Buffer
			if wrong != nil {
				if wrong.Data.Category != "bad_request" || req.ID == "" {
					t.Fatalf("%q: %+v under id %q", line, wrong, req.ID)
				}
				if err := protocol.NewEncoder(&out).Encode(&protocol.Response{JSONRPC: "2.0", ID: req.ID, Error: wrong}); err != nil {
					t.Fatalf("%q: the error cannot be written: %v", line, err)
				}
				continue
			}
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.ClaimParams{})
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.CompleteParams{})
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.SendParams{})
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.FailParams{})
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.SettleParams{})
			_ = protocol.ParseParams(req.Method, req.Params, &protocol.RenewParams{})
			if err := protocol.NewEncoder(&out).Encode(&protocol.Response{JSONRPC: "2.0", ID: req.ID, Result: protocol.Empty{}}); err != nil {
				t.Fatalf("%q: the answer cannot be written: %v", line, err)
			}
			if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
				t.Fatalf("%q: the answer has %d lines", line, n)
			}
		}
		if req.ID != `"last"` {
			t.Fatalf("the request after the garbage was not read")
		}
	})
}

// Any body comes back as it was, as a string exactly where it is text.
func TestBody_RoundTrip(t *testing.T) {
	rapid.Check(t, bodyRoundTrip)
}

func FuzzBody(f *testing.F) { f.Fuzz(rapid.MakeFuzz(bodyRoundTrip)) }

func bodyRoundTrip(t *rapid.T) {
	body := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "body")
	text, err := json.Marshal(protocol.Body(body))
	if err != nil {
		t.Fatal(err)
	}
	escaped := protocol.AppendString(nil, string(body))
	short := len(escaped)-2 <= 2*base64.StdEncoding.EncodedLen(len(body))
	if got, want := text[0] == '"', utf8.Valid(body) && short; got != want {
		t.Fatalf("%q is written as %s", body, text)
	}
	var back protocol.Body
	if err := json.Unmarshal(text, &back); err != nil || !bytes.Equal(back, body) {
		t.Fatalf("%q came back as %q, %v", body, back, err)
	}
}

// Half a surrogate pair has no meaning as text; U+FFFD itself has.
func TestBody_Surrogates(t *testing.T) {
	for text, ok := range map[string]bool{`"\ud83d\ude00"`: true, `"\ufffd"`: true, `"\uFFFD"`: true, "\"\uFFFD\"": true, `"\\ud800"`: true,
		`"\ud800"`: false, `"\udc00x"`: false, `"\ufffd\ud800"`: false, `"\\ufffd\ud800"`: false, "\"\xff\"": false} {
		var b protocol.Body
		if err := json.Unmarshal([]byte(text), &b); (err == nil) != ok {
			t.Errorf("%s: %v, accepted should be %v", text, err, ok)
		}
	}
}

// AppendString writes what any reader of JSON reads as the same text.
func TestAppendString_RoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		var back string
		if err := json.Unmarshal(protocol.AppendString(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			rt.Fatalf("%q came back as %q, %v", s, back, err)
		}
	})
}

// Lines written side by side do not mix, and each is one Write.
func TestEncoder_OneWriteALine(t *testing.T) {
	var w writes
	e := protocol.NewEncoder(&w)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if err := e.Encode(&protocol.Response{JSONRPC: "2.0", ID: "1", Result: strings.Repeat("<&>", 50)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if len(w) != 800 {
		t.Fatalf("%d writes, want 800", len(w))
	}
	for _, line := range w {
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") || !strings.Contains(line, "<&>") {
			t.Fatalf("line %q", line)
		}
	}
	if err := e.Encode(strings.Repeat("x", protocol.MaxLine)); err == nil || len(w) != 800 {
		t.Fatalf("a line beyond the limit: %v, %d writes", err, len(w))
	}
}

type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// Any body of the largest size that is taken fits into a line twice, as a body and
// as a result. Have Body ignore how long its escapes are and this fails.
func TestBody_FitsALine(t *testing.T) {
	const largest = 1 << 20 // mailbox.MaxBody
	for name, unit := range map[string]string{"NULs": "\x00", "escapes": "\x1b", "coloured": "\x1b[1m", "quotes": `"`, "lines": "\n", "text": "ü", "no UTF-8": "\xff"} {
		body := protocol.Body(strings.Repeat(unit, largest/len(unit)))
		text, err := json.Marshal(body)
		if err != nil || 2*len(text) > protocol.MaxLine-1<<16 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		var back protocol.Body
		if err := json.Unmarshal(text, &back); err != nil || string(back) != string(body) {
			t.Errorf("%s came back otherwise, %v", name, err)
		}
		if protocol.IsText(body) != (text[0] == '"') {
			t.Errorf("%s: IsText is %t, and it begins with %c", name, protocol.IsText(body), text[0])
		}
	}
}
