package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Processes are the living children, as their supervisor knows them. A child is
// among them before its program runs, and until it has been reaped.
type Processes interface {
	// Lookup returns what the process may speak for. ok is false for a process
	// that does not live.
	Lookup(p fence.Process) (h fence.Holder, mode config.Mode, ok bool)
	// Alive says that the process showed a sign of life just now.
	Alive(p fence.Process)
	// Claiming says that a claim of the process waits, which is a sign of life
	// until done is called.
	Claiming(p fence.Process) (done func())
	// Draining returns a context that ends when the process is to claim no more.
	Draining(p fence.Process) context.Context
	// Ready says that the process declared itself ready.
	Ready(p fence.Process)
	// LeaseLost says that the store no longer knows the lease of the process,
	// which lives: it is to be told to stop at once.
	LeaseLost(p fence.Process, why string)
}

// maxClaims bounds the messages of one claim; a larger max asks for that many.
const maxClaims = 100

// workers answers workers. bound is the holder whose channel this is; nil on
// worker.sock, where each request says who asks.
type workers struct {
	box       *mailbox.Box
	processes Processes
	given     *given
	bound     *fence.Holder
	drained   context.Context // of a channel: ends when its worker is to claim no more
}

// A verb decodes the params of one method, checking their form, and returns
// who asks and what is to be done for the holder: the first two steps of the
// order of P3, which the rest of goes on in the mailbox's transaction.
type verb func(w *workers, params json.RawMessage) (protocol.Identity, deed, error)

// A deed is done for a holder. Its refusals are the answer.
type deed func(in doing) answer

type doing struct {
	run, wait context.Context
	call      *call
	holder    fence.Holder
	mode      config.Mode
}

var verbs = map[string]verb{
	protocol.MethodClaim:    (*workers).claim,
	protocol.MethodRenew:    (*workers).renew,
	protocol.MethodComplete: (*workers).complete,
	protocol.MethodFail:     (*workers).fail,
	protocol.MethodRelease:  (*workers).release,
	protocol.MethodSettle:   (*workers).settle,
	protocol.MethodCheck:    (*workers).check,
	protocol.MethodSend:     (*workers).send,
	protocol.MethodAwait:    (*workers).await,
	protocol.MethodReady:    (*workers).ready,
	protocol.MethodPing:     (*workers).ping,
}

func (w *workers) handle(run, wait context.Context, c *call) answer {
	v, ok := verbs[c.req.Method]
	if !ok {
		return unknownMethod(c.req.Method)
	}
	who, do, err := v(w, c.req.Params)
	if err != nil {
		return refuse(err)
	}
	asked := c.req
	c.req.Params = nil // not kept while the request waits
	if who, err = oneIdentity(who, protocol.Identity{Process: c.req.Process, LeaseToken: c.req.LeaseToken}); err != nil {
		return refuse(err)
	}
	h, mode, err := w.identify(who)
	if err != nil {
		return refuse(err)
	}
	w.processes.Alive(h.Process)
	if asked.Method != protocol.MethodClaim && asked.Method != protocol.MethodAwait {
		asked.Params = nil // of what never is asked again
	}
	a := do(doing{run: run, wait: wait, call: c, holder: h, mode: mode})
	if a.again != nil {
		a.again = &asked
	}
	if a.err != nil && (a.err.Data.Category == refusal.ActorLeaseLost || a.err.Data.Category == refusal.LeaseCorrupt) {
		// Refused within a transaction, not for being another one: all that this
		// process holds is lost, whichever of its requests found that out.
		w.processes.LeaseLost(h.Process, a.err.Data.Why)
	}
	return a
}

func unknownMethod(method string) answer {
	return answer{err: protocol.ErrorOf(refusal.New(refusal.BadRequest, "there is no method "+quoted(method),
		"it is not one of this socket's", "see docs/protocol.md for the methods")).Coded(protocol.CodeUnknownMethod)}
}

// oneIdentity is what the params of a request and its line say together of who asks.
// Where both say it they must say the same: which of two is meant nobody can know.
func oneIdentity(params, line protocol.Identity) (protocol.Identity, error) {
	if err := sameIdentity(params, line); err != nil {
		return params, err
	}
	if params.Process == "" {
		params.Process = line.Process
	}
	if params.LeaseToken == 0 {
		params.LeaseToken = line.LeaseToken
	}
	return params, nil
}

// sameIdentity refuses two sayings of who asks that contradict each other; what one of
// them leaves out the other may say.
func sameIdentity(one, other protocol.Identity) error {
	what := ""
	switch {
	case one.Process != "" && other.Process != "" && one.Process != other.Process:
		what = "process"
	case one.LeaseToken != 0 && other.LeaseToken != 0 && one.LeaseToken != other.LeaseToken:
		what = "lease_token"
	default:
		return nil
	}
	return refusal.New(refusal.BadRequest, "the request says twice who asks, and not the same",
		what+" is given in two places, with two values", "give it once: beside the params, or in them")
}

// identityOf is what h says who it is.
func identityOf(h fence.Holder) protocol.Identity {
	return protocol.Identity{Process: string(h.Process), LeaseToken: protocol.Token(h.Token)}
}

// identify resolves who asks to the slot that the process hosts. Whether the
// lease is still current when something is written, the mailbox judges in its
// transaction; here the dead, and those whose token is another one, are turned
// away.
func (w *workers) identify(who protocol.Identity) (fence.Holder, config.Mode, error) {
	var p fence.Process
	switch {
	case who.Process != "":
		var err error
		if p, err = fence.ParseProcess(who.Process); err != nil {
			return fence.Holder{}, "", err
		}
	case w.bound == nil:
		return fence.Holder{}, "", refusal.New(refusal.BadRequest, "the request does not say who asks",
			"on this socket each request carries process and lease_token",
			"use the values of SOVEREIGN_PROCESS and SOVEREIGN_LEASE_TOKEN")
	default:
		p = w.bound.Process
	}
	if w.bound != nil {
		if p != w.bound.Process {
			return fence.Holder{}, "", leaseLost("the channel is that of another process")
		}
		if who.LeaseToken == 0 {
			who.LeaseToken = protocol.Token(w.bound.Token)
		}
	}
	h, mode, ok := w.processes.Lookup(p)
	if !ok {
		return fence.Holder{}, "", leaseLost("it is not one of the living processes of this supervisor")
	}
	if fence.Token(who.LeaseToken) != h.Token {
		return fence.Holder{}, "", leaseLost("lease token " + who.LeaseToken.String() + " was given, " + h.Token.String() + " is current")
	}
	return h, mode, nil
}

func leaseLost(why string) error {
	return refusal.New(refusal.ActorLeaseLost, "this process does not hold a lease", why,
		"stop: nothing that this process does counts any more")
}

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
	case p.ID != "":
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

// claimFor claims for in's holder. told, called with whether the answer was
// written, gives back, uncharged, what no answer has brought.
// A wait that ended with the connection, or with the server, is no error: there
// was nothing.
func (w *workers) claimFor(in doing, q mailbox.ClaimRequest) (messages []protocol.Delivery, told func(sent bool), err error) {
	q.Max = min(max(q.Max, 1), maxClaims)
	if err := in.call.bulky(); err != nil {
		return nil, nil, err
	}
	draining := w.processes.Draining(in.holder.Process)
	if draining.Err() != nil {
		return []protocol.Delivery{}, nil, nil
	}
	var waits waitOfClaim
	defer waits.end()
	q.Waits = func() (context.Context, error) { return waits.begin(w, in, draining) }
	if q.Max > 1 || q.Request != "" { // the first has room whatever its size, and a size takes a look at each byte
		q.Room, q.Size = in.call.room(), sizeAtMost
	}
	claimed, err := w.box.Claim(in.run, in.holder, q)
	if err != nil {
		if waits.over() && !isRefusal(err) {
			return []protocol.Delivery{}, nil, nil
		}
		return nil, nil, err
	}
	sizes := lineSizes(claimed)
	fit := in.call.fit(sizes[:whatFits(sizes)])
	for _, d := range claimed {
		w.given.enter(d)
	}
	w.giveBack(in, claimed[fit:], false)
	claimed = claimed[:fit]
	return deliveries(claimed), func(sent bool) { w.giveBack(in, claimed, sent) }, nil
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

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal.Error](err)
	return ok
}

func (w *workers) renew(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.RenewParams
	if err := protocol.ParseParams(protocol.MethodRenew, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	ref, err := refOf(p.ID, p.Token)
	return p.Identity, func(in doing) answer {
		expires, remaining, err := w.box.Renew(in.run, in.holder, ref, p.Progress)
		if err != nil {
			return refuse(err)
		}
		return answer{result: protocol.RenewResult{ExpiresAt: expires, RemainingMS: remaining.Milliseconds()}}
	}, err
}

func (w *workers) complete(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.CompleteParams
	if err := protocol.ParseParams(protocol.MethodComplete, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	ref, err := refOf(p.ID, p.Token)
	if err != nil {
		return p.Identity, nil, err
	}
	if p.Next != nil && p.Next.Max < 0 {
		return p.Identity, nil, badParam("next.max is negative", "give 1 or more, or leave it out for 1")
	}
	return p.Identity, func(in doing) answer {
		settled, err := w.box.Settle(in.run, in.holder, ref, completed(p.Result), outgoings(p.Send))
		if err != nil {
			return refuse(err)
		}
		result := protocol.CompleteResult{State: protocol.MessageState(settled.State.String())}
		if p.Next == nil {
			return answer{result: result}
		}
		next := mailbox.ClaimRequest{Max: p.Next.Max, Wait: p.Next.Wait.Std()}
		p = protocol.CompleteParams{} // not kept while the request waits
		var told func(bool)
		result.Messages, told, err = w.claimFor(in, next)
		result.NextError = protocol.ErrorOf(err) // the completion stands
		return answer{result: result, told: told}
	}, nil
}

func (w *workers) fail(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.FailParams
	if err := protocol.ParseParams(protocol.MethodFail, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	ref, err := refOf(p.ID, p.Token)
	return p.Identity, func(in doing) answer {
		settled, err := w.box.Settle(in.run, in.holder, ref, failed(p), nil)
		if err != nil {
			return refuse(err)
		}
		return answer{result: protocol.FailResult{State: protocol.MessageState(settled.State.String()), Attempts: settled.Attempts}}
	}, err
}

func (w *workers) release(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.ClaimRef
	if err := protocol.ParseParams(protocol.MethodRelease, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	ref, err := refOf(p.ID, p.Token)
	return p.Identity, func(in doing) answer {
		settled, err := w.box.Settle(in.run, in.holder, ref, released(), nil)
		if err != nil {
			return refuse(err)
		}
		return answer{result: protocol.ReleaseResult{State: protocol.MessageState(settled.State.String())}}
	}, err
}

func (w *workers) check(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.ClaimRef
	if err := protocol.ParseParams(protocol.MethodCheck, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	ref, err := refOf(p.ID, p.Token)
	return p.Identity, func(in doing) answer {
		if err := w.box.Check(in.run, in.holder, ref); err != nil {
			return refuse(err)
		}
		return answer{result: protocol.Empty{}}
	}, err
}

func (w *workers) send(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.SendParams
	if err := protocol.ParseParams(protocol.MethodSend, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	var ref mailbox.Ref
	if p.Claim != nil {
		var err error
		if ref, err = refOf(p.Claim.ID, p.Claim.Token); err != nil {
			return p.Identity, nil, err
		}
	}
	return p.Identity, func(in doing) answer {
		var sent mailbox.Sent
		var err error
		if p.Claim != nil {
			if err := sameIdentity(p.Claim.Identity, identityOf(in.holder)); err != nil {
				return refuse(err)
			}
			sent, err = w.box.Stage(in.run, in.holder, ref, outgoing(p.Outgoing))
		} else {
			sent, err = w.box.SendFenced(in.run, in.holder, outgoing(p.Outgoing))
		}
		if err != nil {
			return refuse(err)
		}
		return answer{result: protocol.SendResult{ID: sent.ID.String(), Duplicate: sent.Duplicate}}
	}, nil
}

func (w *workers) ready(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.ReadyParams
	err := protocol.ParseParams(protocol.MethodReady, raw, &p)
	return p.Identity, func(in doing) answer {
		w.processes.Ready(in.holder.Process)
		return answer{result: protocol.Empty{}}
	}, err
}

func (w *workers) ping(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.PingParams
	err := protocol.ParseParams(protocol.MethodPing, raw, &p)
	return p.Identity, func(in doing) answer { return answer{result: protocol.Empty{}} }, err
}

// refOf checks the form of a claim's id. The token's value is judged by the
// mailbox, 0 too.
func refOf(id string, token protocol.Token) (mailbox.Ref, error) {
	parsed, err := mailbox.ParseID(id)
	return mailbox.Ref{ID: parsed, Token: fence.Token(token)}, err
}

func badParam(why, next string) error {
	return refusal.New(refusal.BadRequest, "the params are wrong", why, next)
}
