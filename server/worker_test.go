package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// The whole life of a message on a channel, with what is sent and resulted.
func TestWorker_ClaimRenewComplete(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "hello")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	if d.ID != id || string(d.Body) != "hello" || d.Attempt != 1 || d.Token == 0 || d.RemainingMS <= 0 {
		t.Fatalf("delivery %+v", d)
	}
	renewed := into[protocol.RenewResult](t, p.ask("renew", map[string]any{"id": id, "token": d.Token, "progress": "half"}))
	if renewed.RemainingMS <= 0 {
		t.Fatalf("renewed %+v", renewed)
	}
	if got := h.detail(id).Claim.Progress; got != "half" {
		t.Errorf("progress %q, want half", got)
	}
	want(t, p.ask("check", map[string]any{"id": id, "token": d.Token}), "")
	staged := into[protocol.SendResult](t, p.ask("send", map[string]any{"to": "other", "body": "staged", "claim": map[string]any{"id": id, "token": d.Token}}))
	page, err := h.box.List(t.Context(), mailbox.Filter{Actor: "other"})
	if err != nil || len(page.Messages) != 0 {
		t.Fatalf("staged send is visible: %v %v", page, err)
	}
	done := into[protocol.CompleteResult](t, p.ask("complete", map[string]any{"id": id, "token": d.Token, "result": map[string]any{"base64": base64.StdEncoding.EncodeToString([]byte{0xff, 0})},
		"send": []any{map[string]any{"to": "other", "body": "with it"}}, "next": map[string]any{"max": 3}}))
	if done.State != "DONE" || done.Messages == nil || len(done.Messages) != 0 {
		t.Fatalf("completed %+v", done)
	}
	if got := h.detail(id); !bytes.Equal(got.Result, []byte{0xff, 0}) {
		t.Errorf("result %q", got.Result)
	}
	if got := h.state(staged.ID); got != "NEW" {
		t.Errorf("staged send is %s after the completion, want NEW", got)
	}
}

// P3.7: the answer of fail tells the state and what is charged; of release the
// state.
func TestWorker_FailAndRelease(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	if got := into[protocol.ReleaseResult](t, p.ask("release", map[string]any{"id": id, "token": d.Token})); got.State != "NEW" {
		t.Errorf("released to %s", got.State)
	}
	d = p.claimOne()
	got := into[protocol.FailResult](t, p.ask("fail", map[string]any{"id": id, "token": d.Token, "reason": "no", "dead": true}))
	if got.State != "DEAD" || got.Attempts != 1 {
		t.Errorf("failed %+v, want DEAD after 1 attempt", got)
	}
}

// Mistake 22: a token of 0, "", null or none is no token, whatever the verb; no
// number that is no token is rounded to one (mistake 13).
func TestWorker_RefusesMissingToken(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	for _, verb := range []string{"complete", "fail", "release", "renew", "check"} {
		for token, category := range map[string]string{
			`0`: "fencing_token_stale", `""`: "fencing_token_stale", `null`: "fencing_token_stale",
			fmt.Sprint(d.Token + 1):        "fencing_token_stale",
			`-1`:                           "bad_request",
			`1.5`:                          "bad_request",
			`1e3`:                          "bad_request",
			`9007199254740992`:             "bad_request",
			`"x"`:                          "bad_request",
			`true`:                         "bad_request",
			`[1]`:                          "bad_request",
			`"` + d.Token.String() + `.0"`: "bad_request",
		} {
			want(t, p.ask(verb, fmt.Sprintf(`{"id":%q,"token":%s}`, id, token)), category)
		}
		want(t, p.ask(verb, fmt.Sprintf(`{"id":%q}`, id)), "fencing_token_stale")
	}
	if h.state(id) != "CLAIMED" {
		t.Fatal("a refused settle changed the message")
	}
	want(t, p.ask("complete", fmt.Sprintf(`{"id":%q,"token":"%d"}`, id, d.Token)), "") // as the environment holds it
}

// P3: the first check that fails answers: form, lease, message, recipient, token.
func TestWorker_ChecksInOrder(t *testing.T) {
	h := newHouse(t)
	mine, theirs := h.send("resize", "x"), h.send("other", "x")
	holder := h.birth("resize", 1, config.Worker)
	p := h.shell()
	ask := func(process string, lease any, id string, token any) line {
		return p.ask("complete", map[string]any{"process": process, "lease_token": lease, "id": id, "token": token})
	}
	me, lease := string(holder.Process), holder.Token
	want(t, ask(me, lease, "no id", 1), "bad_request")
	want(t, ask("proc_short", lease, mine, 1), "bad_request")
	want(t, ask("", lease, mine, 1), "bad_request")
	want(t, ask(string(fence.NewProcess()), lease, "no id", 1), "bad_request") // form before lease
	want(t, ask(string(fence.NewProcess()), lease, "m999", 1), "actor_lease_lost")
	want(t, ask(me, lease+1, "m999", 1), "actor_lease_lost")
	want(t, ask(me, 0, "m999", 1), "actor_lease_lost")
	want(t, ask(me, lease, "m999", 0), "message_missing")
	want(t, ask(me, lease, theirs, 0), "not_addressee")
	want(t, ask(me, lease, mine, 0), "fencing_token_stale")
}

// P2.6, mistake 23: what a process that has lost its lease asks is refused,
// whatever it asks, and stays refused.
func TestWorker_RefusesLostLease(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	d := p.claimOne()
	if _, err := h.box.Leave(t.Context(), holder, func(mailbox.Ref) mailbox.Outcome {
		return mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryWorkerLost, ExitCode: -1}
	}, mailbox.Event{Kind: "exited"}); err != nil {
		t.Fatal(err)
	}
	// The registry still has the process: the store alone refuses it.
	for range 2 {
		ref := map[string]any{"id": id, "token": d.Token}
		for _, verb := range []string{"complete", "fail", "release", "renew", "check"} {
			want(t, p.ask(verb, ref), "actor_lease_lost")
		}
		want(t, p.ask("claim", `{}`), "actor_lease_lost")
		want(t, p.ask("send", `{"to":"other","body":"b"}`), "actor_lease_lost")
		want(t, p.ask("send", map[string]any{"to": "other", "body": "b", "claim": ref}), "actor_lease_lost")
	}
	// The supervisor is told, and tells the worker. Leave out LeaseLost in handle and
	// this fails.
	h.living.until(t, func() bool { return h.living.lost[holder.Process] > 0 })
	h.living.change(func() { delete(h.living.holders, holder.Process) })
	for _, verb := range []string{"ping", "ready"} {
		want(t, p.ask(verb, `{}`), "actor_lease_lost")
	}
	page, err := h.box.List(t.Context(), mailbox.Filter{Actor: "other"})
	if err != nil || len(page.Messages) != 0 {
		t.Errorf("a fenced worker sent %v %v", page.Messages, err)
	}
}

// Mistake 18: a request repeated by the same process returns the same claim, and
// charges nothing; another process gets another message or none (P3.3).
func TestWorker_RepeatedClaimIsTheSame(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	first := into[protocol.ClaimResult](t, p.ask("claim", `{"request":"r1"}`))
	again := into[protocol.ClaimResult](t, p.ask("claim", `{"request":"r1"}`))
	if len(first.Messages) != 1 || len(again.Messages) != 1 || again.Messages[0].Token != first.Messages[0].Token ||
		again.Messages[0].Attempt != first.Messages[0].Attempt {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	byID := into[protocol.ClaimResult](t, p.ask("claim", map[string]any{"id": first.Messages[0].ID}))
	if len(byID.Messages) != 1 || byID.Messages[0].Token != first.Messages[0].Token {
		t.Fatalf("by id %+v", byID)
	}
	if got := into[protocol.ClaimResult](t, p.ask("claim", `{}`)); len(got.Messages) != 0 {
		t.Fatalf("claimed what it holds: %+v", got)
	}
	other, _ := h.channel(h.birth("resize", 2, config.Worker))
	want(t, other.ask("claim", map[string]any{"id": first.Messages[0].ID}), "message_not_claimable")
	if got := into[protocol.ClaimResult](t, other.ask("claim", `{"request":"r1"}`)); len(got.Messages) != 0 {
		t.Fatalf("another process got %+v", got)
	}
}

// Repeats of a claim that waits wait as it does: they hold no place of a large answer,
// and all get what it gets. Enter the turn in Claim without Waits and this fails.
func TestWorker_RepeatsOfAWaitingClaimDelayNobody(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	const waiting = 200
	for i := range waiting {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"w%d","method":"claim","params":{"wait":"1h","request":"r1"}}`, i))
	}
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == waiting })
	if got := into[protocol.ClaimResult](t, p.ask("claim", `{}`)); len(got.Messages) != 0 {
		t.Fatalf("%+v", got)
	}
	id := h.send("resize", "x")
	for range waiting {
		got := into[protocol.ClaimResult](t, p.read())
		if len(got.Messages) != 1 || got.Messages[0].ID != id || got.Messages[0].Attempt != 1 {
			t.Fatalf("%+v", got)
		}
	}
}

// A claim that waits delays nobody on its connection, even when as many wait as
// may; it is answered as soon as there is a message; and it is a sign of life
// meanwhile.
func TestWorker_WaitingClaimsDelayNobody(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "first")
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	d := p.claimOne()
	const waiting = 256
	for i := range waiting {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"w%d","method":"claim","params":{"wait":"1h"}}`, i))
	}
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == waiting })
	for range 20 {
		want(t, p.ask("renew", map[string]any{"id": d.ID, "token": d.Token}), "")
	}
	over := want(t, p.ask("claim", `{"wait":"1h"}`), "unavailable")
	if !over.Error.Data.Retryable {
		t.Error("one claim too many is not retryable")
	}
	id := h.send("resize", "second")
	got := p.read()
	if !bytes.HasPrefix(got.ID, []byte(`"w`)) {
		t.Fatalf("answer to %s, want one of the waiting claims", got.ID)
	}
	if m := into[protocol.ClaimResult](t, got).Messages; len(m) != 1 || m[0].ID != id {
		t.Fatalf("got %+v", m)
	}
	// The end of the connection ends the rest, and they claim nothing later.
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 0 })
}

// A claim whose answer could not be written is released, not charged.
func TestWorker_UnwrittenClaimIsReleased(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	ours, theirs := socketPair(t)
	c := h.server.Attach(broken{Conn: ours, after: 0}, holder)
	defer c.Close()
	p := newPeer(t, theirs)
	id := h.send("resize", "x")
	p.write(`{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"1h"}}`)
	if _, err := p.r.ReadByte(); err == nil {
		t.Fatal("an answer came")
	}
	c.CloseWithin(patience)
	d := h.detail(id)
	if d.State != mailbox.New || d.Attempts != 0 || d.Attempt != 1 {
		t.Fatalf("message is %s with %d charged, attempt %d; want NEW, 0, 1", d.State, d.Attempts, d.Attempt)
	}
	if len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryReleased || d.Receipts[0].Counted {
		t.Fatalf("receipts %+v", d.Receipts)
	}
}

// P3.3, mistake 18: the answer to a repeated claim is lost. The worker has the
// claim from the first answer, and keeps it.
func TestWorker_LostRepeatReleasesNothing(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	id := h.send("resize", "x")
	d := p.claimOne()
	ours, theirs := socketPair(t)
	c := h.server.Attach(broken{Conn: ours, after: 0}, holder)
	lost := newPeer(t, theirs)
	lost.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"claim","params":{"id":%q}}`, id))
	if _, err := lost.r.ReadByte(); err == nil {
		t.Fatal("an answer came")
	}
	c.Close()
	want(t, p.ask("check", map[string]any{"id": id, "token": d.Token}), "")
	if got := h.detail(id); got.State != mailbox.Claimed || len(got.Receipts) != 0 {
		t.Fatalf("message is %s, receipts %+v", got.State, got.Receipts)
	}
}

// A channel that has come to its end still carries out what its worker wrote
// before (P4.5: it races recovery, and may win).
func TestChannel_CloseCarriesOutWhatWasWritten(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	p, c := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"complete","params":{"id":%q,"token":%d}}`, id, d.Token))
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	c.CloseWithin(patience)
	if got := h.state(id); got != "DONE" {
		t.Fatalf("message is %s, want DONE", got)
	}
}

// After drain, claims that wait are answered with nothing, and none waits again.
func TestChannel_DrainEndsWaits(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, c := h.channel(holder)
	p.write(`{"jsonrpc":"2.0","id":1,"method":"claim","params":{"wait":"1h"}}`)
	h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 1 })
	c.Notify("drain", nil)
	seen := map[string]bool{}
	for range 2 {
		l := p.read()
		if l.Method != "" {
			seen[l.Method] = true
			continue
		}
		if got := into[protocol.ClaimResult](t, l); len(got.Messages) != 0 {
			t.Fatalf("got %+v", got)
		}
		seen["answer"] = true
	}
	if !seen["drain"] || !seen["answer"] {
		t.Fatalf("saw %v", seen)
	}
	if got := into[protocol.ClaimResult](t, p.ask("claim", `{"wait":"1h"}`)); len(got.Messages) != 0 {
		t.Fatalf("got %+v", got)
	}
}

// Notify does not wait for a worker that does not read.
func TestChannel_NotifyDoesNotBlock(t *testing.T) {
	h := newHouse(t)
	p, c := h.channel(h.birth("resize", 1, config.Worker))
	const notices = 5_000 // more than a socket and the queue have room for
	for n := range notices {
		c.Notify("claim_lost", protocol.ClaimLost{ID: "m1", Token: protocol.Token(n + 1), Reason: strings.Repeat("x", 100)})
	}
	l := p.read() // before it asks: an answer may overtake notices
	p.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`)
	got, last := 0, protocol.Token(0)
	for ; ; l = p.read() {
		if l.Method == "" {
			want(t, l, "")
			break
		}
		var lost protocol.ClaimLost
		if err := json.Unmarshal(l.Params, &lost); err != nil || lost.Token <= last {
			t.Fatalf("%s after token %d: %v", l.Params, last, err)
		}
		got, last = got+1, lost.Token
	}
	if got == 0 || got == notices {
		t.Fatalf("the peer got %d of %d notices: some must have found no room, and the first must have come", got, notices)
	}
}

// P10: a channel speaks for its own process and no other, whatever a request
// says.
func TestChannel_IsTheIdentity(t *testing.T) {
	h := newHouse(t)
	a, b := h.birth("resize", 1, config.Worker), h.birth("other", 1, config.Worker)
	p, _ := h.channel(a)
	want(t, p.ask("ping", identity(a)), "")
	want(t, p.ask("ping", identity(b)), "actor_lease_lost")
	want(t, p.ask("ping", protocol.Identity{LeaseToken: protocol.Token(b.Token)}), "actor_lease_lost")
	// On worker.sock both may speak, beside the params too.
	s := h.shell()
	want(t, s.ask("ping", identity(b)), "")
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","process":%q,"lease_token":%d}`, string(a.Process), a.Token))
	want(t, s.read(), "")
}

// A process claims as its mode allows.
func TestWorker_ClaimsByMode(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "x")
	for i, mode := range []config.Mode{config.Task, config.Daemon} {
		holder := h.birth("resize", i+1, mode)
		want(t, h.shell().ask("claim", identity(holder)), "bad_request")
	}
}

// Each item of a settle is judged alone, also one that is in no form (report 4.9 #79).
func TestSettle_JudgesEachItemAlone(t *testing.T) {
	h := newHouse(t)
	for range 4 {
		h.send("resize", "x")
	}
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := into[protocol.ClaimResult](t, p.ask("claim", `{"max":4}`)).Messages
	if len(d) != 4 {
		t.Fatalf("claimed %d", len(d))
	}
	got := into[protocol.SettleResult](t, p.ask("settle", map[string]any{"items": []any{
		map[string]any{"complete": map[string]any{"id": d[0].ID, "token": d[0].Token}},
		map[string]any{"fail": map[string]any{"id": d[1].ID, "token": d[1].Token, "reason": "r"}},
		map[string]any{"release": map[string]any{"id": d[2].ID, "token": d[2].Token}},
		map[string]any{"complete": map[string]any{"id": d[3].ID, "token": d[0].Token}},
		map[string]any{"complete": map[string]any{"id": "nonsense", "token": 1}},
		map[string]any{"complete": map[string]any{"id": 5}},
		map[string]any{},
		map[string]any{"release": map[string]any{"id": d[3].ID, "token": d[3].Token}, "fail": map[string]any{"id": d[3].ID, "token": d[3].Token}},
		map[string]any{"complete": map[string]any{"id": d[3].ID, "token": d[3].Token, "send": []any{map[string]any{"to": "nobody"}}}},
	}}))
	wantStates := []protocol.MessageState{"DONE", "NEW", "NEW", "", "", "", "", "", ""}
	wantErrors := []string{"", "", "", "fencing_token_stale", "bad_request", "bad_request", "bad_request", "bad_request", "unknown_actor"}
	for i, r := range got.Results {
		category := ""
		if r.Error != nil {
			category = string(r.Error.Data.Category)
		}
		if r.State != wantStates[i] || category != wantErrors[i] {
			t.Errorf("item %d: state %q, category %q; want %q, %q", i, r.State, category, wantStates[i], wantErrors[i])
		}
	}
	if got.Results[1].Attempts == nil || *got.Results[1].Attempts != 1 {
		t.Errorf("fail tells attempts %v, want 1", got.Results[1].Attempts)
	}
	if h.state(d[3].ID) != "CLAIMED" {
		t.Errorf("the refused items changed %s to %s", d[3].ID, h.state(d[3].ID))
	}
}

// Two ends of one message in one settle are made in their order: the first
// counts.
func TestSettle_SameMessageInOrder(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	ref := map[string]any{"id": d.ID, "token": d.Token}
	got := into[protocol.SettleResult](t, p.ask("settle", map[string]any{"items": []any{
		map[string]any{"fail": ref}, map[string]any{"complete": ref}}}))
	if got.Results[0].State != "NEW" || got.Results[1].Error == nil || got.Results[1].Error.Data.Category != "already_settled" {
		t.Fatalf("results %+v", got.Results)
	}
}

// Report 4.8 #74: a reason is accepted whatever it holds; content never makes a settle
// fail.
func TestFail_AcceptsAnyReason(t *testing.T) {
	h := newHouse(t)
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	for _, reason := range []string{`"a\u0000b"`, "\"a\xff\xfe\"", `"\ud800"`, `""`, `"` + strings.Repeat("long ", 400_000) + `"`} {
		id := h.send("resize", "x")
		d := p.claimOne()
		if d.ID != id {
			t.Fatalf("claimed %s, want %s", d.ID, id)
		}
		want(t, p.ask("fail", fmt.Sprintf(`{"id":%q,"token":%d,"dead":true,"reason":%s}`, id, d.Token, reason)), "")
		if h.state(id) != "DEAD" {
			t.Errorf("reason %.20q: message is %s", reason, h.state(id))
		}
	}
}

// Report 4.8 #77: a result beyond the limit is cut and the attempt settles; a body
// beyond it is refused.
func TestComplete_CutsLargeResult(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	big, err := json.Marshal(strings.Repeat("y", 1<<20+1))
	if err != nil {
		t.Fatal(err)
	}
	want(t, p.ask("send", `{"to":"other","body":`+string(big)+`}`), "message_too_large")
	want(t, p.ask("complete", fmt.Sprintf(`{"id":%q,"token":%d,"result":%s}`, id, d.Token, big)), "")
	got := h.detail(id)
	if got.State != mailbox.Done || !got.ResultTruncated || len(got.Result) > 1<<20 {
		t.Fatalf("state %s, truncated %v, %d bytes", got.State, got.ResultTruncated, len(got.Result))
	}
}

// More than fits one line is not claimed: the rest stays NEW, and nothing is on record
// of it. Grant all and release what does not fit, and this fails.
func TestClaim_LeavesWhatDoesNotFit(t *testing.T) {
	h := newHouse(t)
	body := strings.Repeat("y", 1<<20) // seven of them fit
	for range 9 {
		h.send("resize", body)
	}
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	got := into[protocol.ClaimResult](t, p.ask("claim", `{"max":9}`))
	if len(got.Messages) != 7 || string(got.Messages[0].Body) != body {
		t.Fatalf("got %d messages", len(got.Messages))
	}
	counts, err := h.box.Counts(t.Context(), "resize")
	if err != nil || counts.New != 2 || counts.Claimed != 7 {
		t.Fatalf("counts %+v %v", counts, err)
	}
	q, _ := h.channel(h.birth("resize", 2, config.Worker))
	for range 2 {
		if got := into[protocol.ClaimResult](t, q.ask("claim", `{"max":1}`)); len(got.Messages) != 1 || got.Messages[0].Attempt != 1 {
			t.Fatalf("the start of what was left is %+v", got.Messages)
		}
	}
}

// Mistake 26: a renewal never shortens what is left.
func TestRenew_NeverShortens(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "x")
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	d := p.claimOne()
	last := d.ExpiresAt
	for range 5 {
		r := into[protocol.RenewResult](t, p.ask("renew", map[string]any{"id": d.ID, "token": d.Token}))
		if r.ExpiresAt.Before(last.Add(-time.Millisecond)) || r.RemainingMS > time.Minute.Milliseconds() {
			t.Fatalf("renewed to %v after %v, remaining %d ms", r.ExpiresAt, last, r.RemainingMS)
		}
		last = r.ExpiresAt
	}
}

// Only ready and ping may be sent without an id; both are signs of life.
func TestWorker_Notifications(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	p.write(`{"jsonrpc":"2.0","method":"ready"}`)
	h.living.until(t, func() bool { return h.living.ready[holder.Process] && h.living.alive[holder.Process] > 0 })
	p.write(`{"jsonrpc":"2.0","method":"claim","params":{}}`)
	l := want(t, p.read(), "bad_request")
	if string(l.ID) != "null" {
		t.Errorf("answered under id %s, want null", l.ID)
	}
}
