package server

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

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
		var told teller
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

// maxItems bounds the items of one settle.
const maxItems = 1000

// An end is one item of a settle, or why it is not one.
type end struct {
	who     protocol.Identity // as far as the item says it
	ref     mailbox.Ref
	outcome mailbox.Outcome
	sends   []mailbox.Outgoing
	charges bool // its answer tells the attempts
	err     error
}

// settle ends several claims, each judged alone: an item that is in no form is
// refused like one whose token is stale, and the others are carried out.
func (w *workers) settle(raw json.RawMessage) (protocol.Identity, deed, error) {
	var p protocol.SettleItems
	if err := protocol.ParseParams(protocol.MethodSettle, raw, &p); err != nil {
		return p.Identity, nil, err
	}
	if len(p.Items) > maxItems {
		return p.Identity, nil, badParam("items are too many", fmt.Sprintf("give at most %d in one request", maxItems))
	}
	ends := make([]end, len(p.Items))
	distinct := map[mailbox.ID]bool{}
	for i, item := range p.Items {
		ends[i] = parseEnd(item)
		distinct[ends[i].ref.ID] = true
	}
	return p.Identity, func(in doing) answer {
		results := make([]protocol.SettleOutcome, len(ends))
		if len(distinct) < len(ends) {
			// Several ends of one message are made in their order.
			for i := range ends {
				results[i] = w.end(in, &ends[i])
			}
			return answer{result: protocol.SettleResult{Results: results}}
		}
		var all sync.WaitGroup // at most maxItems; together they share a commit
		for i := range ends {
			all.Go(func() { results[i] = w.end(in, &ends[i]) })
		}
		all.Wait()
		return answer{result: protocol.SettleResult{Results: results}}
	}, nil
}

func parseEnd(raw json.RawMessage) (e end) {
	var item protocol.SettleItem
	if e.err = protocol.ParseParams(protocol.MethodSettle, raw, &item); e.err != nil {
		return e
	}
	given := 0
	if c := item.Complete; c != nil {
		given++
		e.who = c.Identity
		e.ref, e.err = refOf(c.ID, c.Token)
		e.outcome, e.sends = completed(c.Result), outgoings(c.Send)
		if e.err == nil && c.Next != nil {
			e.err = badParam("next stands in an item", "claim with a request of its own")
		}
	}
	if f := item.Fail; f != nil {
		given++
		e.who = f.Identity
		e.ref, e.err = refOf(f.ID, f.Token)
		e.outcome, e.charges = failed(*f), true
	}
	if r := item.Release; r != nil {
		given++
		e.who = r.Identity
		e.ref, e.err = refOf(r.ID, r.Token)
		e.outcome = released()
	}
	if given != 1 {
		e.err = badParam("an item must have exactly one of complete, fail and release", "make one item of each")
	}
	return e
}

func (w *workers) end(in doing, e *end) protocol.SettleOutcome {
	if e.err != nil {
		return protocol.SettleOutcome{Error: protocol.ErrorOf(e.err)}
	}
	if err := sameIdentity(e.who, identityOf(in.holder)); err != nil {
		return protocol.SettleOutcome{Error: protocol.ErrorOf(err)}
	}
	settled, err := w.box.Settle(in.run, in.holder, e.ref, e.outcome, e.sends)
	if err != nil {
		return protocol.SettleOutcome{Error: protocol.ErrorOf(err)}
	}
	out := protocol.SettleOutcome{State: protocol.MessageState(settled.State.String())}
	if e.charges {
		out.Attempts = &settled.Attempts
	}
	return out
}

func completed(result []byte) mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.Complete, Category: mailbox.CategoryCompleted,
		Result: result, ExitCode: -1, ByWorker: true}
}

func failed(p protocol.FailParams) mailbox.Outcome {
	o := mailbox.Outcome{Verdict: mailbox.FailAttempt, Category: mailbox.CategoryFailedByWorker,
		Reason: p.Reason, ExitCode: -1, ByWorker: true}
	if p.Delay != nil {
		delay := p.Delay.Std()
		o.Delay = &delay
	}
	if p.Dead {
		o.Verdict = mailbox.Kill
	}
	return o
}

func released() mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased, ExitCode: -1, ByWorker: true}
}
