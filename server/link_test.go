package server_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
)

// What is no request gets an error; the connection, and the others, live on.
func TestLink_GarbageHarmsNobody(t *testing.T) {
	h := newHouse(t)
	p := h.people()
	for _, c := range []struct {
		line string
		id   string
		code int
	}{
		{"garbage", "null", protocol.CodeParse},
		{"\x00\x00\x00", "null", protocol.CodeParse},
		{"\xff\xfe{}", "null", protocol.CodeParse},
		{`{"jsonrpc":"2.0","id":1`, "null", protocol.CodeParse},
		{strings.Repeat("[", 100_000), "null", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"status","params":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat("}", 20_001), "null", protocol.CodeParse},
		{"GET / HTTP/1.1\r", "null", protocol.CodeParse},
		{"Host: evil.example\r", "null", protocol.CodeParse},
		{`[{"jsonrpc":"2.0","id":1,"method":"status"}]`, "null", protocol.CodeInvalidRequest},
		{`7`, "null", protocol.CodeInvalidRequest},
		{`null`, "null", protocol.CodeInvalidRequest},
		{`{}`, "null", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"1.0","id":4,"method":"status"}`, "4", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":"five","method":7}`, `"five"`, protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"status"}`, "null", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","method":"status"}`, "null", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":6}`, "6", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":7,"method":"no.such"}`, "7", protocol.CodeUnknownMethod},
		{`{"jsonrpc":"2.0","id":8,"method":"status","params":[1]}`, "8", protocol.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":9,"method":"status","params":{"actor":7}}`, "9", protocol.CodeInvalidParams},
		{strings.Repeat("x", 9<<20), "null", protocol.CodeParse},
	} {
		p.write(c.line)
		l := want(t, p.read(), "bad_request")
		if string(l.ID) != c.id || l.Error.Code != c.code {
			t.Errorf("%.60q: id %s, code %d, want %s, %d (%v)", c.line, l.ID, l.Error.Code, c.id, c.code, l.Error)
		}
		if l.Error.Message == "" || l.Error.Data.Why == "" {
			t.Errorf("%.60q: no message or reason in %+v", c.line, l.Error)
		}
	}
	p.write("\r\n   \n")
	want(t, p.ask("hello", `{"of":"a newer client","ignored":[1]}`), "")
}

// A refusal of params names the field and what it must be.
func TestLink_NamesTheWrongField(t *testing.T) {
	h := newHouse(t)
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	for params, fragments := range map[string][]string{
		`{"id":"m1","token":-3}`:                              {"token", "whole number", "-3"},
		`{"id":"m1","token":1,"send":[{"to":7}]}`:             {"send.to", "a string"},
		`{"id":"m1","token":1,"send":[{"to":"a","delay":5}]}`: {"send.delay", "10s"},
		`{"id":"m1","token":1,"result":5}`:                    {"result", "base64"},
		`{"id":"m1","token":1,"result":"\ud800"}`:             {"result", "surrogate"},
		`{"id":"m1","token":1,"next":{"wait":"-1s"}}`:         {"next.wait", "not negative"},
	} {
		l := want(t, p.ask("complete", params), "bad_request")
		for _, f := range fragments {
			if !strings.Contains(l.Error.Data.Why, f) {
				t.Errorf("%s: why is %q, without %q", params, l.Error.Data.Why, f)
			}
		}
	}
}

// Ids are strings, numbers or null, and repeated as they came. One that is under
// way is not given twice: the refusal has no id, and the first is answered.
func TestLink_Ids(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	for _, id := range []string{`0`, `-7`, `1.50`, `""`, `"a b"`, `null`, `12345678901234567890`} {
		p.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if l := want(t, p.read(), ""); string(l.ID) != id {
			t.Errorf("id %s came back as %s", id, l.ID)
		}
	}
	p.write(`{"jsonrpc":"2.0","id":5,"method":"claim","params":{"wait":"1h"}}`)
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 1 })
	p.write(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if l := want(t, p.read(), "bad_request"); string(l.ID) != "null" {
		t.Errorf("the second of one id was answered under %s", l.ID)
	}
	id := h.send("resize", "x")
	l := p.read()
	if got := into[protocol.ClaimResult](t, l); string(l.ID) != "5" || len(got.Messages) != 1 || got.Messages[0].ID != id {
		t.Errorf("answer %s %s", l.ID, l.Result)
	}
}

// A peer that has shut its writing end still gets its answers; a request without
// a newline at the end counts.
func TestLink_HalfClosedPeerIsAnswered(t *testing.T) {
	h := newHouse(t)
	p := h.people()
	if _, err := p.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"status"}`)); err != nil {
		t.Fatal(err)
	}
	if err := p.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	want(t, p.read(), "")
	if _, err := p.r.ReadByte(); err != io.EOF {
		t.Errorf("after the answer: %v, want EOF", err)
	}
}

// A peer that asks and never reads holds up nobody else, and is not read from
// without bound.
func TestLink_DeafPeer(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", strings.Repeat("z", 1<<20))
	deaf := h.people()
	if err := deaf.conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	written := 0
	for i := range 100_000 {
		n, err := fmt.Fprintf(deaf.conn, `{"jsonrpc":"2.0","id":%d,"method":"inbox.show","params":{"id":%q}}`+"\n", i, id)
		written += n
		if err != nil {
			if os.IsTimeout(err) {
				break
			}
			t.Fatal(err)
		}
	}
	if written > 4<<20 {
		t.Errorf("%d bytes of requests were taken from a peer that does not read", written)
	}
	want(t, h.people().ask("hello", `{}`), "")
}

// Serve ends what waits, answers what runs, and leaves no socket.
func TestServe_EndsCleanly(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	people := h.people()
	p.write(`{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"1h"}}`)
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 1 })
	people.write(`{"jsonrpc":"2.0","id":2,"method":"events.list","params":{"after":1000,"wait":"1h"}}`)
	want(t, people.ask("hello", `{}`), "") // both are read: nothing is left in the socket
	h.stop()
	if got := into[protocol.ClaimResult](t, p.read()); len(got.Messages) != 0 {
		t.Errorf("got %+v", got)
	}
	for _, x := range []*peer{p, people} {
		if _, err := io.ReadAll(x.r); err != nil {
			t.Errorf("the connection did not end cleanly: %v", err)
		}
	}
	if _, err := server.Dial(h.data); err == nil {
		t.Error("the socket still answers")
	}
}

// One user has at most so many connections, and is told so; others are served.
func TestServe_BoundsConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	h := newHouse(t)
	for range 2048 {
		conn, err := server.DialSocket(h.worker.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	l := want(t, h.shell().read(), "unavailable")
	if !l.Error.Data.Retryable {
		t.Error("not retryable")
	}
}

// What waits is held until it is answered, so that it is small: claims that are large
// are refused rather than wait, and hold up nothing. Let them wait and this fails, with
// as much memory taken as somebody likes to send.
func TestLink_LargeRequestsDoNotWait(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	// The end of each line, made once: quoting millions of letters is slow work.
	padded := `"method":"claim","params":{"wait":"1h","padding":"` + strings.Repeat("x", 7<<20) + `"}}`
	const large = 6 // more than may be unread
	for i := range large {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"w%d",`, i) + padded)
		want(t, p.read(), "bad_request")
	}
	p.write(`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"claim","params":{"wait":"1h"}}`)
	want(t, p.read(), "bad_request")
	want(t, p.ask("ping", `{}`), "")
	// A large one that need not wait is answered, and one that waits and is small waits; so
	// does a completion for what comes next, whose result has been stored.
	h.send("resize", "x")
	p.write(`{"jsonrpc":"2.0","id":"now",` + padded)
	got := into[protocol.ClaimResult](t, p.read())
	if len(got.Messages) != 1 {
		t.Fatalf("got %+v", got)
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"next","method":"complete","params":{"id":%q,"token":%d,"result":"%s","next":{"wait":"1h"}}}`,
		got.Messages[0].ID, got.Messages[0].Token, strings.Repeat("x", 500<<10)))
	p.write(`{"jsonrpc":"2.0","id":"small","method":"claim","params":{"wait":"1h","padding":"` + strings.Repeat("x", 100<<10) + `"}}`)
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 2 })
}
