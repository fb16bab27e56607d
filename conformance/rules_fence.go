package conformance

import (
	"bytes"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Who somebody is, and what a process may do that has been replaced.
var fenceRules = []Rule{
	{"P10", "channel", "a worker's channel is its identity, and speaks for nobody else", tryChannel},
	{"P10", "whole_identity", "no status, message, event or refusal shows an identity whole", tryWholeIdentity},
	{"P3.10", "reads", "reads change nothing", tryReads},
	{"P4.2", "killed", "a killed worker's attempt ends worker_lost, and its message is handed out again", tryKilled},
	{"P2.5", "fenced", "whatever a replaced process asks is refused, again and again", tryFenced},
	{"P1.6", "successor", "its successor has another identity and a greater lease token", trySuccessor},
}

func tryChannel(t *trial) {
	me, two := t.host(Work, "1"), t.host(Work, "2")
	id := t.send(Work, "x")
	if t.err != nil {
		return
	}
	d := t.one("claim on the channel, without an identity", me, t.request(me.channel, protocol.MethodClaim, args{"id": id}))
	t.refused("ping as another", t.request(me.channel, protocol.MethodPing, two.As), refusal.ActorLeaseLost)
	t.refused("ping with another lease token", t.request(me.channel, protocol.MethodPing, args{"lease_token": me.As.LeaseToken + 1}), refusal.ActorLeaseLost)
	t.granted("complete on worker.sock", t.as(me, protocol.MethodComplete, ref(d)), nil)
}

func tryWholeIdentity(t *trial) {
	me, two := t.host(Work, "1"), t.host(Work, "2")
	d := t.claimed(me, Work)
	var seen []answer
	ask := func(method string, params any) { seen = append(seen, t.request(t.operator, method, params)) }
	ask(protocol.MethodStatus, args{})
	ask(protocol.MethodInboxShow, args{"id": d.ID})
	ask(protocol.MethodInboxList, args{"actor": Work})
	ask(protocol.MethodEventsList, args{"limit": 1000})
	ask(protocol.MethodLeasesList, args{})
	seen = append(seen, t.as(two, protocol.MethodClaim, args{"id": d.ID}), t.as(two, protocol.MethodComplete, ref(d)),
		t.under(protocol.Identity{Process: me.As.Process, LeaseToken: 1}, protocol.MethodPing, nil))
	for _, a := range seen {
		for _, w := range []*Worker{me, two} {
			t.must(w.As.Process == "" || !bytes.Contains(a.raw, []byte(w.As.Process)), "an answer shows an identity whole: %s", clip(a.raw))
		}
	}
}

func tryReads(t *trial) {
	me := t.host(Work, "1")
	d := t.claimed(me, Work)
	same := t.unchanged(d.ID)
	for range 2 {
		t.operate(protocol.MethodStatus, args{}, nil)
		t.operate(protocol.MethodInboxList, args{"actor": Work}, nil)
		t.operate(protocol.MethodInboxShow, args{"id": d.ID}, nil)
		t.operate(protocol.MethodEventsList, args{"limit": 10}, nil)
		t.operate(protocol.MethodVerify, args{}, nil)
		t.granted("check", t.as(me, protocol.MethodCheck, ref(d)), nil)
	}
	same("reads")
}

// kill ends the worker of a slot, and returns it with its successor.
func (t *trial) kill(actor, slot string) (dead, next *Worker) {
	dead = t.host(actor, slot)
	if t.err != nil {
		return dead, &Worker{}
	}
	if err := t.sys.Kill(dead.PID); err != nil {
		t.failf("kill the worker: %v", err)
	}
	next, err := t.judge.host(t.ctx, actor, slot, dead)
	if err != nil {
		t.failf("%v", err)
		return dead, &Worker{}
	}
	_ = dead.channel.conn.Close()
	return dead, next
}

func tryKilled(t *trial) {
	d := t.claimed(t.host(Work, "2"), Work)
	staged := t.stage(t.host(Work, "2"), d)
	_, next := t.kill(Work, "2")
	shown := t.state("after its worker was killed", d.ID, "NEW")
	if t.err == nil && len(shown.Receipts) != 1 {
		t.failf("%d receipts of one start", len(shown.Receipts))
	}
	if t.err == nil {
		r := shown.Receipts[0]
		t.must(r.Status == "failed" && r.Category == "worker_lost" && r.Counted && !r.ByWorker && r.Token == d.Token && r.Signal == "KILL",
			"the receipt says %s, %s, signal %q, token %d", r.Status, r.Category, r.Signal, r.Token)
	}
	t.unseen("what it had staged", staged)
	again := t.claim(next, d.ID)
	t.must(again.Token > d.Token && again.Attempt == d.Attempt+1, "attempt %d under %d after attempt %d under %d", again.Attempt, again.Token, d.Attempt, d.Token)
	t.granted("complete by the successor", t.as(next, protocol.MethodComplete, ref(again)), nil)
}

func tryFenced(t *trial) {
	d := t.claimed(t.host(Work, "2"), Work)
	dead, next := t.kill(Work, "2")
	again := t.claim(next, d.ID)
	same := t.unchanged(d.ID)
	for range 2 {
		for _, method := range []string{protocol.MethodComplete, protocol.MethodFail, protocol.MethodRelease, protocol.MethodRenew, protocol.MethodCheck} {
			t.refused(method+" by the dead", t.as(dead, method, ref(d)), refusal.ActorLeaseLost)
			t.refused(method+" by the dead under its successor's claim", t.as(dead, method, ref(again)), refusal.ActorLeaseLost)
		}
		t.refused("claim by the dead", t.as(dead, protocol.MethodClaim, args{}), refusal.ActorLeaseLost)
		t.refused("send by the dead", t.as(dead, protocol.MethodSend, args{"to": Other, "body": "x"}), refusal.ActorLeaseLost)
		t.refused("settle by the dead", t.as(dead, protocol.MethodSettle, args{"items": []any{args{"complete": ref(again)}}}), refusal.ActorLeaseLost)
		t.refused("its identity with its successor's lease token", t.under(protocol.Identity{Process: dead.As.Process, LeaseToken: next.As.LeaseToken},
			protocol.MethodComplete, ref(again)), refusal.ActorLeaseLost)
	}
	same("what the dead asked")
}

func trySuccessor(t *trial) {
	dead, next := t.kill(Work, "2")
	t.must(t.err != nil || next.As.Process != dead.As.Process && next.As.LeaseToken > dead.As.LeaseToken,
		"lease token %d after %d", next.As.LeaseToken, dead.As.LeaseToken)
}
