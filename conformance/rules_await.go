package conformance

import (
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Who waits for the end of what was sent, and what may be relied on.
var awaitRules = []Rule{
	{"protocol", "await", "an await waits, and answers once the message has ended, with its result or its failure", tryAwait},
	{"protocol", "await_timeout", "an await whose time is up says how the message stands, and changes nothing", tryAwaitTimeout},
	{"protocol", "await_gone", "an await of a message that is removed says that it is gone, and what was known of it", tryAwaitGone},
	{"protocol", "await_sender", "form, message, sender: an actor awaits only what it sent", tryAwaitSender},
	{"P2.5", "await_fenced", "an await of a process that was replaced is refused, also one that waited already", tryAwaitFenced},
}

// ask sends a message to Other as w, visible at once, and returns its id.
func (t *trial) ask(w *Worker) string {
	var out protocol.SendResult
	t.granted("send", t.as(w, protocol.MethodSend, args{"to": Other, "body": "asked"}), &out)
	if out.ID != "" {
		t.sent = append(t.sent, out.ID)
	}
	return out.ID
}

// awaits begins an await by w, on a connection of its own that the caller leaves, and
// checks that it holds up no other request.
func (t *trial) awaits(w *Worker, id string) (on *wire, from <-chan answer) {
	on = t.fresh()
	if t.err != nil {
		return on, nil
	}
	from, err := on.begin(protocol.MethodAwait, args{"process": w.As.Process, "lease_token": w.As.LeaseToken, "id": id, "timeout": "20s"})
	if err != nil {
		t.failf("await: %v", err)
		return on, nil
	}
	t.granted("ping beside an await", t.request(on, protocol.MethodPing, w.As), nil)
	select {
	case a := <-from:
		t.failf("the await did not wait: %s", clip(a.raw))
	default:
	}
	return on, from
}

// answered is what comes of what awaits began.
func (t *trial) answered(on *wire, from <-chan answer) answer {
	if t.err != nil {
		return answer{}
	}
	a, err := on.wait(t.ctx, from)
	if err != nil {
		t.failf("the await: %v", err)
	}
	return a
}

// awaited checks that an await was granted, and how the message stood.
func (t *trial) awaited(what string, a answer, id string, want protocol.MessageState) (out protocol.Awaited) {
	t.granted(what, a, &out)
	t.must(out.ID == id && out.State == want, "%s: %s is %q, and it is %s, %s", what, out.ID, out.State, id, want)
	return out
}

func tryAwait(t *trial) {
	me, other := t.host(Work, "1"), t.host(Other, "1")
	id := t.ask(me)
	on, from := t.awaits(me, id)
	defer t.leave(on)
	d := t.claim(other, id)
	t.granted("complete", t.as(other, protocol.MethodComplete, ref(d).with("result", "answer")), nil)
	for what, a := range map[string]answer{
		"the await that waited":  t.answered(on, from),
		"an await after the end": t.as(me, protocol.MethodAwait, args{"id": id}),
	} {
		out := t.awaited(what, a, id, protocol.MessageDone)
		t.must(!out.Gone && string(out.Result) == "answer" && out.LastFailure == nil, "%s: the result is %q, gone %t", what, out.Result, out.Gone)
		t.must(out.Receipt != nil && out.Receipt.Token == d.Token && out.Receipt.Category == "completed", "%s: the receipt is not that of the completion", what)
	}

	id = t.ask(me)
	on, from = t.awaits(me, id)
	defer t.leave(on)
	d = t.claim(other, id)
	t.granted("fail with dead", t.as(other, protocol.MethodFail, ref(d).with("reason", "no").with("dead", true)), nil)
	out := t.awaited("the await of a message that failed", t.answered(on, from), id, protocol.MessageDead)
	t.must(out.LastFailure != nil && out.LastFailure.Reason == "no" && out.Receipt != nil && out.Receipt.Token == d.Token && len(out.Result) == 0,
		"the await of a message that failed says not why: %+v", out)
}

func tryAwaitTimeout(t *trial) {
	me, other := t.host(Work, "1"), t.host(Other, "1")
	id := t.ask(me)
	short := args{"id": id, "timeout": "20ms"}
	same := t.unchanged(id)
	out := t.awaited("an await of what nobody claims", t.as(me, protocol.MethodAwait, short), id, protocol.MessageNew)
	t.must(!out.Gone && len(out.Result) == 0, "what nobody has claimed is gone, or has a result: %+v", out)
	same("an await")
	d := t.claim(other, id)
	same = t.unchanged(id)
	t.awaited("an await of what is worked on", t.as(me, protocol.MethodAwait, short), id, protocol.MessageClaimed)
	same("an await")
	// One attempt that has failed is no end where others follow.
	t.granted("fail", t.as(other, protocol.MethodFail, ref(d).with("reason", "once")), nil)
	out = t.awaited("an await between attempts", t.as(me, protocol.MethodAwait, short), id, protocol.MessageNew)
	t.must(out.LastFailure != nil && out.LastFailure.Reason == "once", "an await between attempts knows of no failure: %+v", out)
}

// goneTries is how often a message is removed behind an await until one was removed
// during it: that an await has begun to wait cannot be seen.
const goneTries = 20

func tryAwaitGone(t *trial) {
	me, other := t.host(Work, "1"), t.host(Other, "1")
	for range goneTries {
		id := t.ask(me)
		d := t.claim(other, id)
		t.granted("fail", t.as(other, protocol.MethodFail, ref(d).with("reason", "once")), nil)
		on, from := t.awaits(me, id)
		defer t.leave(on)
		t.operate(protocol.MethodInboxDrop, protocol.InboxIDsParams{IDs: []string{id}}, &protocol.InboxChanged{})
		a := t.answered(on, from)
		t.refused("an await of what was removed before", t.as(me, protocol.MethodAwait, args{"id": id}), refusal.MessageMissing)
		if a.err != nil && a.err.Data.Category == refusal.MessageMissing {
			continue // it was removed before
		}
		var out protocol.Awaited
		t.granted("an await of what was removed meanwhile", a, &out)
		t.must(out.Gone && out.ID == id, "it says gone %t of %s, and it is true of %s", out.Gone, out.ID, id)
		t.must(out.Receipt != nil && out.Receipt.Token == d.Token, "the last receipt is not told: %+v", out)
		return
	}
	t.failf("an await never says that a message is gone")
}

func tryAwaitSender(t *trial) {
	me, two, other := t.host(Work, "1"), t.host(Work, "2"), t.host(Other, "1")
	people, mine := t.send(Work, "x"), t.ask(me)
	const missing = "m9007199254740"
	await := func(w *Worker, a args) answer { return t.as(w, protocol.MethodAwait, a.with("timeout", "20ms")) }
	t.refused("await without an id", await(me, args{}), refusal.BadRequest)
	t.refused("await of no id", await(me, args{"id": "no id"}), refusal.BadRequest)
	t.refused("await for no duration", t.as(me, protocol.MethodAwait, args{"id": mine, "timeout": 20}), refusal.BadRequest)
	t.refused("await of no message", await(me, args{"id": missing}), refusal.MessageMissing)
	t.refused("await of what people sent, by its addressee", await(me, args{"id": people}), refusal.PermissionDenied)
	t.refused("await of what another actor sent, by its addressee", await(other, args{"id": mine}), refusal.PermissionDenied)
	t.awaited("await by the other slot of the sender", await(two, args{"id": mine}), mine, protocol.MessageNew)
}

func tryAwaitFenced(t *trial) {
	dead, other := t.host(Work, "2"), t.host(Other, "1")
	id := t.ask(dead)
	t.refused("await with another lease token", t.under(protocol.Identity{Process: dead.As.Process, LeaseToken: dead.As.LeaseToken + 1},
		protocol.MethodAwait, args{"id": id, "timeout": "20ms"}), refusal.ActorLeaseLost)
	on, from := t.awaits(dead, id)
	defer t.leave(on)
	_, next := t.kill(Work, "2")
	t.refused("await by the dead", t.as(dead, protocol.MethodAwait, args{"id": id, "timeout": "20ms"}), refusal.ActorLeaseLost)
	t.refused("await by the dead of no message", t.as(dead, protocol.MethodAwait, args{"id": "m9007199254740"}), refusal.ActorLeaseLost)
	d := t.claim(other, id)
	t.granted("complete", t.as(other, protocol.MethodComplete, ref(d).with("result", "late")), nil)
	t.refused("the dead's await that waited", t.answered(on, from), refusal.ActorLeaseLost)
	t.refused("await by the dead of what has ended", t.as(dead, protocol.MethodAwait, args{"id": id}), refusal.ActorLeaseLost)
	out := t.awaited("await by its successor", t.as(next, protocol.MethodAwait, args{"id": id}), id, protocol.MessageDone)
	t.must(string(out.Result) == "late", "its successor gets %q", out.Result)
}
