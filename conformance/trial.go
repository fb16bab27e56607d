package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A trial is the check of one rule. The first thing that is not as it must be
// decides; after that nothing more is asked, and every answer is empty.
type trial struct {
	*judge
	ctx    context.Context
	err    error
	sent   []string // messages to be removed
	claims []held   // claims that may have to be released
}

type held struct {
	by *Worker
	protocol.ClaimRef
}

// args are the params of a request.
type args map[string]any

func (t *trial) failf(format string, a ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, a...)
	}
}

// must fails unless the condition holds.
func (t *trial) must(holds bool, format string, a ...any) {
	if !holds {
		t.failf(format, a...)
	}
}

// request asks over w and returns the answer, whatever it is.
func (t *trial) request(w *wire, method string, params any) answer {
	if t.err != nil {
		return answer{}
	}
	to, err := w.begin(method, params)
	if err == nil {
		var a answer
		if a, err = w.wait(t.ctx, to); err == nil {
			return a
		}
	}
	t.failf("%s: %v", method, err)
	return answer{}
}

// as asks on worker.sock as the worker.
func (t *trial) as(w *Worker, method string, a args) answer { return t.under(w.As, method, a) }

// under asks on worker.sock under an identity.
func (t *trial) under(id protocol.Identity, method string, a args) answer {
	params := args{"process": id.Process, "lease_token": id.LeaseToken}
	for k, v := range a {
		params[k] = v
	}
	return t.request(t.socket, method, params)
}

// granted reads the answer to a request that must succeed.
func (t *trial) granted(what string, a answer, result any) {
	switch {
	case t.err != nil:
	case a.err != nil:
		t.failf("%s: refused, %s (%s)", what, a.err.Data.Category, a.err.Error())
	case result != nil:
		if err := json.Unmarshal(a.result, result); err != nil {
			t.failf("%s: the result cannot be read: %v", what, err)
		}
	}
}

// refused checks that the answer is a refusal of one of the categories.
func (t *trial) refused(what string, a answer, categories ...refusal.Category) {
	switch {
	case t.err != nil:
	case a.err == nil:
		t.failf("%s: accepted, and had to be refused, %s: %s", what, categories[0], clip(a.result))
	case !slices.Contains(categories, a.err.Data.Category):
		t.failf("%s: refused as %s, and it is %s", what, a.err.Data.Category, categories[0])
	}
}

func clip(b []byte) string { return string(b[:min(len(b), 120)]) }

// host is who hosts a slot now.
func (t *trial) host(actor, slot string) *Worker {
	w, err := t.judge.host(t.ctx, actor, slot, nil)
	if err != nil {
		t.failf("%v", err)
		return &Worker{}
	}
	return w
}

// operate asks as an operator; it must be granted.
func (t *trial) operate(method string, params, result any) {
	t.granted(method, t.request(t.operator, method, params), result)
}

// send sends a message as an operator and returns its id.
func (t *trial) send(to, body string) string {
	var out protocol.SendResult
	t.operate(protocol.MethodSend, args{"to": to, "body": body}, &out)
	if out.ID != "" {
		t.sent = append(t.sent, out.ID)
	}
	return out.ID
}

func (t *trial) show(id string) (d protocol.MessageDetail) {
	t.operate(protocol.MethodInboxShow, args{"id": id}, &d)
	return d
}

// claim claims the one message for w, which must be granted.
func (t *trial) claim(w *Worker, id string) protocol.Delivery {
	return t.one("claim", w, t.as(w, protocol.MethodClaim, args{"id": id}))
}

// one is the one message of a claim's answer.
func (t *trial) one(what string, w *Worker, a answer) (d protocol.Delivery) {
	var out protocol.ClaimResult
	t.granted(what, a, &out)
	if t.err != nil {
		return d
	}
	t.noteClaims(w, out.Messages)
	if len(out.Messages) != 1 {
		t.failf("%s: %d messages came, and it is 1", what, len(out.Messages))
		return d
	}
	return out.Messages[0]
}

func (t *trial) noteClaims(w *Worker, got []protocol.Delivery) {
	for _, d := range got {
		t.claims = append(t.claims, held{w, protocol.ClaimRef{Identity: w.As, ID: d.ID, Token: d.Token}})
	}
}

// claimed sends a message and claims it for w.
func (t *trial) claimed(w *Worker, to string) protocol.Delivery { return t.claim(w, t.send(to, "x")) }

// state checks where a message stands.
func (t *trial) state(what, id string, want protocol.MessageState) protocol.MessageDetail {
	d := t.show(id)
	t.must(d.State == want, "%s: the message is %s, and it is %s", what, d.State, want)
	return d
}

// unchanged returns a function that checks that the message is as it is now.
func (t *trial) unchanged(id string) func(what string) {
	before := t.picture(id)
	return func(what string) {
		after := t.picture(id)
		t.must(before == after, "%s: the message has changed, from %s to %s", what, before, after)
	}
}

// picture is all of a message but what only time changes.
func (t *trial) picture(id string) string {
	d := t.show(id)
	if d.Claim != nil {
		d.Claim.RemainingMS, d.Claim.ExpiresAt = 0, time.Time{}
	}
	d.Why = ""
	b, _ := json.Marshal(d) // what was read can be written
	return string(b)
}

// notified waits for a notification to w about a message.
func (t *trial) notified(w *Worker, method, id string) {
	for t.err == nil {
		select {
		case line := <-w.channel.notified:
			var p protocol.ClaimLost
			if line.Method == method && json.Unmarshal(line.Params, &p) == nil && p.ID == id {
				return
			}
		case <-t.ctx.Done():
			t.failf("no %s of message %s came: %v", method, id, context.Cause(t.ctx))
		}
	}
}

// expire waits until w has been told that its claim has expired.
func (t *trial) expire(w *Worker, d protocol.Delivery) {
	t.notified(w, protocol.NotifyClaimLost, d.ID)
}

// tidyLimit bounds what is done behind a rule that failed, too.
const tidyLimit = 10 * time.Second

// tidy releases the claims that are left, and removes the messages. What cannot
// be removed disturbs no other rule: each claims its own message by id, or takes
// what it finds for what it is.
func (t *trial) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tidyLimit)
	defer cancel()
	after := &trial{judge: t.judge, ctx: ctx}
	for _, c := range t.claims {
		after.as(c.by, protocol.MethodRelease, args{"id": c.ID, "token": c.Token})
	}
	if len(t.sent) > 0 {
		var out protocol.InboxChanged
		after.operate(protocol.MethodInboxDrop, protocol.InboxIDsParams{IDs: t.sent}, &out)
	}
}
