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
// order of P3. The mailbox takes the others, in its transaction.
type verb func(w *workers, params json.RawMessage) (protocol.Identity, deed, error)

// A deed is done for a holder. Its refusals are the answer.
type deed func(in doing) answer

// doing is what a deed is done with: the request, and who asks.
type doing struct {
	run, wait context.Context // as a handler gets them
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
	params := c.req.Params
	c.req.Params = nil // not kept while the request waits
	if who, err = oneIdentity(who, protocol.Identity{Process: c.req.Process, LeaseToken: c.req.LeaseToken}); err != nil {
		return refuse(err)
	}
	h, mode, err := w.identify(who)
	if err != nil {
		return refuse(err)
	}
	w.processes.Alive(h.Process)
	if c.req.Method != protocol.MethodClaim && c.req.Method != protocol.MethodAwait {
		params = nil // of what never is asked again
	}
	a := do(doing{run: run, wait: wait, call: c, holder: h, mode: mode})
	if a.again != nil {
		asked := c.req
		asked.Params = params
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
