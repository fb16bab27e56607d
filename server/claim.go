package server

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// maxClaims bounds the messages of one claim; a larger max asks for that many.
const maxClaims = 100

func (w *workers) claim(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.ClaimParams
	if err := protocol.ParseParams(protocol.MethodClaim, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	q := mailbox.ClaimRequest{Max: p.Max, Wait: p.Wait.Std(), Request: p.Request}
	switch {
	case p.Max < 0:
		return p.Identity, nil, badParam("max is negative", "give 1 or more, or leave it out for 1")
	case len(p.Request) > 256:
		return p.Identity, nil, badParam("request is too long", "give a string of at most 256 bytes")
	case p.ID != "" || namesNothing(raw):
		id, err := mailbox.ParseID(p.ID)
		if err != nil {
			return p.Identity, nil, err
		}
		q.ID = id
	}
	return p.Identity, func(in doing) answer {
		if in.mode != config.Worker {
			return refuse(refusal.New(refusal.BadRequest, "this process claims no messages",
				"its actor's mode is "+string(in.mode), "a worker claims; set mode: worker"))
		}
		messages, told, err := w.claimFor(in, q)
		if err == nil && len(messages) == 0 && (q.Wait > 0 || q.Request != "") && passedOn(in.wait) {
			return answer{again: &protocol.Request{}}
		}
		if err != nil {
			return refuse(err)
		}
		return answer{result: protocol.ClaimResult{Messages: messages}, told: told}
	}, nil
}

// namesNothing reports whether the params of a claim have an id that is empty: a message
// is meant then, and the claim of any other would be a mistake.
func namesNothing(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"id"`)) {
		return false
	}
	var p struct {
		ID *string `json:"id"`
	}
	return json.Unmarshal(raw, &p) == nil && p.ID != nil && *p.ID == ""
}

// claimFor claims for in's holder. told, once it knows whether the answer was
// written, gives back, uncharged, what no answer has brought.
// A wait that ended with the connection, or with the server, is no error: there
// was nothing.
func (w *workers) claimFor(in doing, q mailbox.ClaimRequest) (messages []protocol.Delivery, told teller, err error) {
	q.Max = min(max(q.Max, 1), maxClaims)
	if err := in.call.bulky(); err != nil {
		return nil, nil, err
	}
	draining := w.processes.Draining(in.holder.Process)
	if draining.Err() != nil {
		return []protocol.Delivery{}, nil, nil
	}
	x := &claiming{workers: w, in: in, draining: draining}
	defer x.end()
	q.Waits = x.begin
	if q.Max > 1 || q.Request != "" { // the first has room whatever its size, and a size takes a look at each byte
		q.Room, q.Size = in.call.room(), sizeAtMost
	}
	claimed, err := w.box.Claim(in.run, in.holder, q)
	if err != nil {
		if x.over() && !isRefusal(err) {
			return []protocol.Delivery{}, nil, nil
		}
		return nil, nil, err
	}
	var few [1]int
	sizes := lineSizes(few[:0], claimed)
	fit := in.call.fit(sizes[:whatFits(sizes)])
	for _, d := range claimed {
		w.given.enter(d)
	}
	w.giveBack(in, claimed[fit:], false)
	claimed = claimed[:fit]
	x.claimed = claimed
	return deliveries(claimed), x, nil
}

// giveBack ends an answer with these claims: those that their worker has got from
// no answer are released, uncharged. A claim that is no longer current needs no
// release.
func (w *workers) giveBack(in doing, claimed []mailbox.Delivery, sent bool) {
	for _, d := range claimed {
		if !w.given.leave(d, sent) {
			continue
		}
		_, _ = w.box.Settle(context.WithoutCancel(in.run), in.holder, mailbox.Ref{ID: d.ID, Token: d.Token},
			mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased, ExitCode: -1,
				Reason: "its worker could not be given it"}, nil)
	}
}
