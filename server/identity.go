package server

import (
	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

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
