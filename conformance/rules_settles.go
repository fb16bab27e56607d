package conformance

import (
	"fmt"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// How work ends, and what becomes visible.
var settleRules = []Rule{
	{"P3.5", "token_required", "every settle requires the claim's token", tryTokenRequired},
	{"P2.4", "refused_writes_nothing", "a refused settle writes nothing", tryRefusedWritesNothing},
	{"P2.6", "sticky", "a refused token is refused again, whatever happened in between", trySticky},
	{"P3.6", "repeat", "a settle repeated by its process succeeds and writes nothing", tryRepeat},
	{"P3.6", "other_verb", "another verb with a token that has settled is refused, already_settled", tryOtherVerb},
	{"P3.7", "fail", "a fail is charged, and the last one makes the message DEAD", tryFail},
	{"P3.7", "fail_dead", "fail with dead makes the message DEAD at once", tryFailDead},
	{"P3.7", "retry", "a DEAD message is retried with its history, and no attempt number repeats", tryRetry},
	{"protocol", "release", "a release is not charged", tryRelease},
	{"protocol", "settle_items", "the items of a settle are judged each alone", trySettleItems},
	{"protocol", "next", "complete with next claims in the same call", tryNext},
	{"P8", "staged", "a staged send is visible with its claim's completion, not before", tryStaged},
	{"P8", "staged_discarded", "what a failed or released attempt staged is gone", tryStagedDiscarded},
	{"P8", "send_whole", "a completion with one send that is refused sends nothing, and the claim goes on", trySendWhole},
	{"P8", "staged_fenced", "a send within a claim that is not current is refused", tryStagedFenced},
}

func ref(d protocol.Delivery) args { return args{"id": d.ID, "token": d.Token} }

// with is a plus one more.
func (a args) with(key string, value any) args {
	out := args{key: value}
	for k, v := range a {
		out[k] = v
	}
	return out
}

func tryTokenRequired(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	same := t.unchanged(d.ID)
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
		for what, a := range map[string]args{"no token": {"id": d.ID}, "token 0": {"id": d.ID, "token": 0}, "no value": {"id": d.ID, "token": nil}} {
			t.refused(method+" with "+what, t.as(me, method, a), refusal.FencingTokenStale)
		}
		t.refused(method+" with a negative token", t.as(me, method, args{"id": d.ID, "token": -1}), refusal.BadRequest)
	}
	same("settles without a token")
}

func tryRefusedWritesNothing(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	same := t.unchanged(d.ID)
	stale := args{"id": d.ID, "token": d.Token + 1}
	t.refused("complete", t.as(me, protocol.MethodComplete, stale.with("result", "wrong").with("send", []args{{"to": Other, "body": "x"}})), refusal.FencingTokenStale)
	t.refused("fail", t.as(me, protocol.MethodFail, stale.with("reason", "wrong")), refusal.FencingTokenStale)
	t.refused("renew", t.as(me, protocol.MethodRenew, stale.with("progress", "wrong")), refusal.FencingTokenStale)
	same("refused settles")
}

func trySticky(t *trial) {
	me := t.host(Work, "1")
	first := t.claimed(me, Work)
	t.granted("release", t.as(me, protocol.MethodRelease, ref(first)), nil)
	stale := func(when string) {
		t.refused("complete with the released token, "+when, t.as(me, protocol.MethodComplete, ref(first)), refusal.AlreadySettled)
		t.refused("check with it, "+when, t.as(me, protocol.MethodCheck, ref(first)), refusal.AlreadySettled, refusal.FencingTokenStale)
	}
	stale("while NEW")
	second := t.claim(me, first.ID)
	stale("while claimed anew")
	t.granted("complete with the new token", t.as(me, protocol.MethodComplete, ref(second).with("result", "second")), nil)
	stale("when DONE")
	d := t.state("in the end", first.ID, "DONE")
	t.must(d.Result != nil && *d.Result == "second", "the result is not that of the current claim")
}

func tryRepeat(t *trial) {
	me, two := t.host(Work, "1"), t.host(Work, "2")
	for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease} {
		d := t.claimed(me, Work)
		a := ref(d).with("result", "first").with("reason", "first").with("dead", method == protocol.MethodFail)
		t.granted(method, t.as(me, method, a), nil)
		same := t.unchanged(d.ID)
		for range 2 {
			t.granted(method+" again", t.as(me, method, a.with("result", "second").with("reason", "second")), nil)
		}
		same(method + " again")
		t.refused(method+" again by another process", t.as(two, method, a), refusal.FencingTokenStale)
		shown := t.show(d.ID)
		t.must(len(shown.Receipts) == 1, "%s: %d receipts of one start", method, len(shown.Receipts))
		t.must(method != protocol.MethodComplete || shown.Result != nil && *shown.Result == "first", "the first result does not stand")
	}
}

func tryOtherVerb(t *trial) {
	me := t.host(Work, "1")
	verbs := []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease}
	for _, first := range verbs {
		d := t.claimed(me, Work)
		t.granted(first, t.as(me, first, ref(d)), nil)
		same := t.unchanged(d.ID)
		for _, other := range verbs {
			if other != first {
				t.refused(other+" after "+first, t.as(me, other, ref(d)), refusal.AlreadySettled)
			}
		}
		same("another verb after " + first)
	}
}

func tryFail(t *trial) {
	me, id := t.host(Work, "1"), t.send(Work, "x")
	for n := 1; n <= Attempts; n++ {
		d := t.claim(me, id)
		var out protocol.FailResult
		t.granted("fail", t.as(me, protocol.MethodFail, ref(d).with("reason", fmt.Sprintf("no. %d", n))), &out)
		want := protocol.MessageNew
		if n == Attempts {
			want = protocol.MessageDead
		}
		t.must(out.State == want && out.Attempts == n, "the %d. fail answers %s with %d attempts", n, out.State, out.Attempts)
		shown := t.state("after a fail", id, want)
		t.must(shown.Claim == nil && len(shown.Receipts) == n && shown.Attempts == n, "%d receipts, %d attempts after %d fails", len(shown.Receipts), shown.Attempts, n)
	}
}

func tryFailDead(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	var out protocol.FailResult
	t.granted("fail with dead", t.as(me, protocol.MethodFail, ref(d).with("dead", true)), &out)
	t.must(out.State == protocol.MessageDead, "it answers %s", out.State)
	t.state("after it", d.ID, "DEAD")
}

func tryRetry(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	t.granted("fail with dead", t.as(me, protocol.MethodFail, ref(d).with("dead", true)), nil)
	var out protocol.InboxChanged
	t.operate(protocol.MethodInboxRetry, protocol.InboxIDsParams{IDs: []string{d.ID}}, &out)
	again := t.claim(me, d.ID)
	t.must(again.Attempt == d.Attempt+1 && again.Token > d.Token, "attempt %d under %d after attempt %d under %d", again.Attempt, again.Token, d.Attempt, d.Token)
	t.must(len(t.show(d.ID).Receipts) == 1, "the history is gone")
}

func tryRelease(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	var out protocol.ReleaseResult
	t.granted("release", t.as(me, protocol.MethodRelease, ref(d)), &out)
	shown := t.state("after a release", d.ID, "NEW")
	t.must(out.State == protocol.MessageNew && shown.Attempts == 0 && shown.Attempt == 1 && len(shown.Receipts) == 1 && !shown.Receipts[0].Counted,
		"it answers %s, and %d attempts are charged", out.State, shown.Attempts)
}

func trySettleItems(t *trial) {
	me := t.host(Work, "1")
	a, b, c, d := t.claimed(me, Work), t.claimed(me, Work), t.claimed(me, Work), t.claimed(me, Work)
	var out protocol.SettleResult
	t.granted("settle", t.as(me, protocol.MethodSettle, args{"items": []any{
		args{"complete": ref(a)},
		args{"complete": args{"id": b.ID, "token": b.Token + 1000}},
		args{"fail": ref(c)},
		args{},
		args{"complete": ref(d), "release": ref(d)},
		args{"release": ref(d)},
	}}), &out)
	if t.err == nil && len(out.Results) != 6 {
		t.failf("%d results of 6 items", len(out.Results))
	}
	if t.err != nil {
		return
	}
	for i, want := range []protocol.MessageState{protocol.MessageDone, "", protocol.MessageNew, "", "", protocol.MessageNew} {
		r := out.Results[i]
		t.must(r.State == want && (r.Error != nil) == (want == ""), "item %d: state %q, error %v", i+1, r.State, r.Error)
	}
	if t.err == nil {
		t.must(out.Results[1].Error.Data.Category == refusal.FencingTokenStale, "item 2 is refused as %s", out.Results[1].Error.Data.Category)
		t.must(out.Results[3].Error.Data.Category == refusal.BadRequest, "item 4 is refused as %s", out.Results[3].Error.Data.Category)
	}
	t.state("the first", a.ID, "DONE")
	t.state("the second", b.ID, "CLAIMED")
}

func tryNext(t *trial) {
	me := t.host(Work, "1")
	first := t.claimed(me, Work)
	t.send(Work, "next")
	var out protocol.CompleteResult
	t.granted("complete with next", t.as(me, protocol.MethodComplete, ref(first).with("next", args{"wait": "5s"})), &out)
	t.noteClaims(me, out.Messages)
	t.must(out.State == protocol.MessageDone && len(out.Messages) == 1, "state %s, and %d messages", out.State, len(out.Messages))
	if t.err == nil {
		t.must(out.Messages[0].ID != first.ID && out.Messages[0].Token > first.Token, "it brought %s under %d", out.Messages[0].ID, out.Messages[0].Token)
		t.granted("check of what next brought", t.as(me, protocol.MethodCheck, ref(out.Messages[0])), nil)
	}
}

// stage stages a send to Other within d, and returns its id.
func (t *trial) stage(me *Worker, d protocol.Delivery) string {
	var out protocol.SendResult
	t.granted("send within a claim", t.as(me, protocol.MethodSend, args{"to": Other, "body": "staged", "claim": ref(d)}), &out)
	return out.ID
}

// unseen checks that a message can neither be shown nor claimed.
func (t *trial) unseen(what, id string) {
	t.refused(what+": show", t.request(t.operator, protocol.MethodInboxShow, args{"id": id}), refusal.MessageMissing)
	t.refused(what+": claim", t.as(t.host(Other, "1"), protocol.MethodClaim, args{"id": id}), refusal.MessageMissing)
}

func tryStaged(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	id := t.stage(me, d)
	t.unseen("before the completion", id)
	var now protocol.SendResult
	t.granted("send without a claim", t.as(me, protocol.MethodSend, args{"to": Other, "body": "now"}), &now)
	t.sent = append(t.sent, now.ID)
	t.state("sent without a claim", now.ID, "NEW")
	t.granted("complete", t.as(me, protocol.MethodComplete, ref(d)), nil)
	t.sent = append(t.sent, id)
	shown := t.state("after the completion", id, "NEW")
	t.must(shown.From == Work, "it comes from %q, and a worker sends as its actor", shown.From)
}

func tryStagedDiscarded(t *trial) {
	me := t.host(Work, "1")
	for _, method := range []string{protocol.MethodFail, protocol.MethodRelease} {
		d := t.claimed(me, Work)
		id := t.stage(me, d)
		t.granted(method, t.as(me, method, ref(d)), nil)
		t.unseen("after "+method, id)
		again := t.claim(me, d.ID)
		t.granted("complete of the next attempt", t.as(me, protocol.MethodComplete, ref(again)), nil)
		t.unseen("after the next attempt's completion", id)
	}
}

func trySendWhole(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	var before, after protocol.Inbox
	t.operate(protocol.MethodInboxList, args{"actor": Other, "limit": 500}, &before)
	bad := []args{{"to": Other, "body": "x"}, {"to": "nobody-of-that-name", "body": "x"}}
	t.refused("complete with a send to nobody", t.as(me, protocol.MethodComplete, ref(d).with("send", bad)), refusal.UnknownActor)
	t.operate(protocol.MethodInboxList, args{"actor": Other, "limit": 500}, &after)
	t.must(len(before.Messages) == len(after.Messages), "a part of its sends was sent")
	t.granted("check after it", t.as(me, protocol.MethodCheck, ref(d)), nil)
	t.granted("complete without it", t.as(me, protocol.MethodComplete, ref(d)), nil)
	t.operate(protocol.MethodInboxList, args{"actor": Other, "limit": 500}, &after)
	t.must(len(before.Messages) == len(after.Messages), "a part of the refused sends went out with a later completion")
}

func tryStagedFenced(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	send := func(claim args) answer {
		return t.as(me, protocol.MethodSend, args{"to": Other, "body": "x", "claim": claim})
	}
	t.refused("a send with another token", send(args{"id": d.ID, "token": d.Token + 1}), refusal.FencingTokenStale)
	t.granted("complete", t.as(me, protocol.MethodComplete, ref(d)), nil)
	t.refused("a send within a completed claim", send(ref(d)), refusal.AlreadySettled, refusal.FencingTokenStale)
}
