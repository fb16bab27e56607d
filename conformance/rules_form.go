package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// What a request must look like, and what an answer does.
var formRules = []Rule{
	{"protocol", "garbage", "what is no request gets an error, and the connection goes on", tryGarbage},
	{"protocol", "long_line", "a line beyond 8 MiB gets an error, and the connection goes on", tryLongLine},
	{"protocol", "ids", "an answer bears the id of its request, a number or a string", tryIDs},
	{"protocol", "side_by_side", "a claim that waits delays no other request", trySideBySide},
	{"protocol", "error_shape", "a refusal carries category, why, next and retryable", tryErrorShape},
	{"protocol", "any_bytes", "a body and a reason may hold any bytes", tryAnyBytes},
	{"P3", "identity", "a request on worker.sock that does not say who asks is refused", tryIdentity},
	{"P3", "order", "form, lease, message, addressee, token: the first that fails answers", tryOrder},
	{"P10", "operators", "worker.sock answers no operator's verb", tryOperators},
}

// fresh is a connection of its own to worker.sock, which the caller closes.
func (t *trial) fresh() *wire {
	w, err := t.dial(t.ctx, t.sys.Dial)
	if err != nil {
		t.failf("connect: %v", err)
		return t.socket
	}
	return w
}

// leave closes what fresh returned.
func (t *trial) leave(w *wire) {
	if w != t.socket {
		_ = w.conn.Close()
	}
}

// line writes a line of any form, and returns the answer under id.
func (t *trial) line(w *wire, text string, id protocol.ID) answer {
	if t.err != nil {
		return answer{}
	}
	from := (<-chan answer)(w.unasked)
	if id != protocol.Null {
		from = w.expect(id)
	}
	if err := w.write([]byte(text + "\n")); err != nil {
		t.failf("write: %v", err)
		return answer{}
	}
	a, err := w.wait(t.ctx, from)
	if err != nil {
		t.failf("after %q: %v", text[:min(len(text), 40)], err)
	}
	return a
}

func (t *trial) coded(what string, a answer, code int) {
	t.refused(what, a, refusal.BadRequest)
	t.must(a.err == nil || a.err.Code == code, "%s: the code is %d, and it is %d", what, codeOf(a), code)
}

func codeOf(a answer) int {
	if a.err == nil {
		return 0
	}
	return a.err.Code
}

func tryGarbage(t *trial) {
	w, me := t.fresh(), t.host(Work, "1")
	defer t.leave(w)
	for _, g := range []struct {
		line string
		id   protocol.ID
		code int
	}{
		{`this is no JSON`, protocol.Null, protocol.CodeParse},
		{`{"jsonrpc":"2.0","id":`, protocol.Null, protocol.CodeParse},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, protocol.Null, protocol.CodeInvalidRequest},
		{`"ping"`, protocol.Null, protocol.CodeInvalidRequest},
		{`{"jsonrpc":"1.0","id":901,"method":"ping"}`, "901", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":902}`, "902", protocol.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":903,"method":"claim","params":[1]}`, "903", protocol.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":904,"method":"no.such.method","params":{}}`, "904", protocol.CodeUnknownMethod},
		{`{"jsonrpc":"2.0","id":905,"method":"claim","params":{"wait":10}}`, "905", protocol.CodeInvalidParams},
	} {
		t.coded(g.line, t.line(w, g.line, g.id), g.code)
	}
	t.granted("ping after it", t.request(w, protocol.MethodPing, me.As), nil)
}

func tryLongLine(t *trial) {
	w, me := t.fresh(), t.host(Work, "1")
	defer t.leave(w)
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", protocol.MaxLine) + `"}}`
	t.coded("a line beyond the limit", t.line(w, long, protocol.Null), protocol.CodeParse)
	t.granted("ping after it", t.request(w, protocol.MethodPing, me.As), nil)
}

func tryIDs(t *trial) {
	w, me := t.fresh(), t.host(Work, "1")
	defer t.leave(w)
	who, _ := json.Marshal(me.As) // strings and a number
	for _, id := range []protocol.ID{`7`, `"seven"`, `""`, `-1`} {
		a := t.line(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping","params":%s}`, id, who), id)
		t.granted("ping under "+string(id), a, nil)
		t.must(t.err != nil || bytes.Contains(a.raw, []byte(`"jsonrpc":"2.0"`)), "an answer is not of JSON-RPC 2.0: %s", clip(a.raw))
	}
}

func trySideBySide(t *trial) {
	w, me := t.fresh(), t.host(Other, "1")
	defer t.leave(w)
	if t.err != nil {
		return
	}
	waits, err := w.begin(protocol.MethodClaim, args{"process": me.As.Process, "lease_token": me.As.LeaseToken, "wait": "20s"})
	if err != nil {
		t.failf("claim: %v", err)
		return
	}
	t.granted("ping beside a claim that waits", t.request(w, protocol.MethodPing, me.As), nil)
	select {
	case a := <-waits:
		t.failf("the claim did not wait: %s", clip(a.raw))
	default:
	}
	id := t.send(Other, "wake")
	if t.err != nil {
		return // the claim ends with its connection
	}
	if a, err := w.wait(t.ctx, waits); err != nil {
		t.failf("the claim that waited: %v", err)
	} else if d := t.one("the claim that waited", me, a); d.ID != id {
		t.failf("the claim that waited brought %s, and %s was sent", d.ID, id)
	}
}

func tryErrorShape(t *trial) {
	a := t.as(t.host(Work, "1"), protocol.MethodComplete, args{"id": "m9007199254740", "token": 1})
	t.refused("complete of a message that is not there", a, refusal.MessageMissing)
	t.must(t.err != nil || codeOf(a) == protocol.CodeRefused, "the code is %d, and it is %d", codeOf(a), protocol.CodeRefused)
	var shape struct {
		Error struct {
			Message *string `json:"message"`
			Data    map[string]any
		}
	}
	if t.err == nil && (json.Unmarshal(a.raw, &shape) != nil || shape.Error.Message == nil) {
		t.failf("the error has no message: %s", clip(a.raw))
	}
	for _, key := range []string{"category", "why", "next", "retryable"} {
		_, there := shape.Error.Data[key]
		t.must(there, "the error's data has no %s: %s", key, clip(a.raw))
	}
}

func tryAnyBytes(t *trial) {
	me := t.host(Work, "1")
	body := protocol.Body("\x00\xff not UTF-8 \n")
	var sent protocol.SendResult
	t.operate(protocol.MethodSend, args{"to": Work, "body": body}, &sent)
	t.sent = append(t.sent, sent.ID)
	d := t.claim(me, sent.ID)
	t.must(bytes.Equal(d.Body, body), "the body came back as %q", d.Body)
	t.granted("a reason with control characters",
		t.as(me, protocol.MethodFail, args{"id": d.ID, "token": d.Token, "reason": "\x1b[2J\u0000\u202e" + strings.Repeat("x", 100<<10)}), nil)
	shown := t.show(d.ID)
	t.must(shown.LastFailure != nil && !strings.ContainsAny(shown.LastFailure.Reason, "\x1b\x00"),
		"the reason is shown with its control characters, or not at all")
}

func tryIdentity(t *trial) {
	id := t.send(Work, "x")
	t.refused("claim without an identity", t.request(t.socket, protocol.MethodClaim, args{"id": id}), refusal.BadRequest)
	t.refused("claim under no identity", t.under(protocol.Identity{Process: "me", LeaseToken: 1}, protocol.MethodClaim, args{"id": id}), refusal.BadRequest)
	t.state("after it", id, "NEW")
}

// tryOrder asks with everything wrong, then with one thing less, and so on.
func tryOrder(t *trial) {
	me, other := t.host(Work, "1"), t.host(Other, "1")
	stranger := protocol.Identity{Process: "proc_" + strings.Repeat("0", 32), LeaseToken: 1}
	wrong := protocol.Identity{Process: me.As.Process, LeaseToken: me.As.LeaseToken + 1}
	d := t.claimed(other, Other)
	mine := t.claimed(me, Work)
	const missing = "m9007199254740"
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
		t.refused(method+": form before lease", t.under(stranger, method, args{"id": "no id", "token": 1}), refusal.BadRequest)
		t.refused(method+": lease before message", t.under(stranger, method, args{"id": missing, "token": 1}), refusal.ActorLeaseLost)
		t.refused(method+": lease token", t.under(wrong, method, args{"id": mine.ID, "token": mine.Token}), refusal.ActorLeaseLost)
		t.refused(method+": message", t.as(me, method, args{"id": missing, "token": 1}), refusal.MessageMissing)
		t.refused(method+": addressee before token", t.as(me, method, args{"id": d.ID, "token": 0}), refusal.NotAddressee)
		t.refused(method+": token", t.as(me, method, args{"id": mine.ID, "token": mine.Token + 1}), refusal.FencingTokenStale)
	}
	t.granted("check of the current claim", t.as(me, protocol.MethodCheck, args{"id": mine.ID, "token": mine.Token}), nil)
}

func tryOperators(t *trial) {
	me, id := t.host(Work, "1"), t.send(Work, "x")
	for _, method := range []string{protocol.MethodStatus, protocol.MethodInboxShow, protocol.MethodInboxCancel, protocol.MethodShutdown, protocol.MethodLeasesReset} {
		t.coded(method, t.as(me, method, args{"id": id, "ids": []string{id}, "actor": Other}), protocol.CodeUnknownMethod)
	}
	t.state("after it", id, "NEW")
}
