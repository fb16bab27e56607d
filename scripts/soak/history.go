package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A Call is a request with its answer. An answer that did not come has the category
// unknown, at the end of time.
type Call struct {
	Line   // the request
	Life   Line
	Answer Line
}

func (c Call) accepted() bool { return c.Answer.Category == "" }
func (c Call) lost() bool     { return c.Answer.Category == unknown }

// settles says whether the request ends a claim.
func (c Call) settles() bool {
	return c.Method == protocol.MethodComplete || c.Method == protocol.MethodFail || c.Method == protocol.MethodRelease
}

// staged says whether a send names a claim.
func (c Call) staged() bool { return c.Method == protocol.MethodSend && c.Message != "" }

// A claimRef names a claim.
type claimRef struct {
	message string
	token   protocol.Token
}

// A History is the evidence, put in order.
type History struct {
	Evidence
	lives    []Line // the begin lines, in their order in time
	spans    map[string][2]int64
	calls    []Call
	messages map[string]protocol.MessageDetail
	receipts map[claimRef]protocol.Receipt
	of       map[string][]Call // requests about a message, by message
	sends    map[string][]Call // by nonce
	gone     map[string]bool   // messages that an operator has dropped, or may have
}

// order puts the evidence in order. It is a pure function.
func order(e Evidence) History {
	h := History{Evidence: e, spans: map[string][2]int64{}, messages: map[string]protocol.MessageDetail{},
		receipts: map[claimRef]protocol.Receipt{}, of: map[string][]Call{}, sends: map[string][]Call{}, gone: map[string]bool{}}
	type number struct {
		log  string
		call int
	}
	life, answers := map[string]Line{}, map[number]Line{}
	for _, l := range e.Lines {
		switch l.Kind {
		case kindBegin:
			life[l.Log] = l
			h.lives = append(h.lives, l)
		case kindAnswer:
			answers[number{l.Log, l.Call}] = l
		}
		if l.At != 0 {
			span, known := h.spans[l.Log]
			if !known {
				span[0] = l.At
			}
			span[1] = max(span[1], l.At)
			h.spans[l.Log] = span
		}
	}
	slices.SortStableFunc(h.lives, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	for _, l := range e.Lines {
		if l.Kind != kindCall {
			continue
		}
		c := Call{Line: l, Life: life[l.Log], Answer: Line{At: math.MaxInt64, Category: unknown}}
		if a, found := answers[number{l.Log, l.Call}]; found {
			c.Answer = a
			if a.Category == unknown || a.At == 0 {
				c.Answer.At = math.MaxInt64 // it may be carried out later; or a shell wrote no time
			}
		}
		h.calls = append(h.calls, c)
		if l.Message != "" {
			h.of[l.Message] = append(h.of[l.Message], c)
		}
		if l.Method == protocol.MethodSend {
			h.sends[l.Nonce] = append(h.sends[l.Nonce], c)
		}
		if l.Method == methodDrop && (c.accepted() || c.lost()) {
			h.gone[l.Message] = true
		}
	}
	for _, m := range e.Messages {
		h.messages[m.ID] = m
		for _, r := range m.Receipts {
			h.receipts[claimRef{m.ID, r.Token}] = r
		}
	}
	return h
}

// A granted claim, with the request that was answered with it.
type granted struct {
	Grant
	Call
}

// grants are all claims that workers were told of, by message, in the order of the
// logs. The start of a task is one, at a time that ends with its first line.
func (h History) grants() map[string][]granted {
	out := map[string][]granted{}
	for _, c := range h.calls {
		if c.Method == methodStart {
			g := Grant{Message: c.Message, Token: c.Token, Attempt: c.Attempt, Nonce: c.Nonce}
			c.Answer = Line{At: c.At}
			c.At = 0
			out[g.Message] = append(out[g.Message], granted{g, c})
			continue
		}
		for _, g := range c.Answer.Claimed {
			out[g.Message] = append(out[g.Message], granted{g, c})
		}
	}
	return out
}

// refusals counts what was refused, by category.
func (h History) refusals() map[refusal.Category]int {
	out := map[refusal.Category]int{}
	for _, c := range h.calls {
		if c.Answer.Category != "" && c.Method != methodStart {
			out[c.Answer.Category]++
		}
	}
	return out
}

// about is everything on record about a message, in the order of time, for people.
func (h History) about(id string) (out []string) {
	if id == "" {
		return nil
	}
	m, found := h.messages[id]
	if found {
		out = append(out, fmt.Sprintf("%s to %s, %q: %s, attempt %d, %d charged", id, m.To, m.Subject, m.State, m.Attempt, m.Attempts))
	}
	for _, r := range m.Receipts {
		out = append(out, fmt.Sprintf("receipt: attempt %d token %d by %s %s/%d: %s %s by worker %t counted %t %s", r.Attempt, r.Token,
			r.Process, r.Actor, r.Slot, r.Status, r.Category, r.ByWorker, r.Counted, r.Reason))
	}
	for _, e := range h.Events {
		if e.Message == id {
			out = append(out, fmt.Sprintf("event %d: %s attempt %d token %d %s %s", e.Seq, e.Kind, e.Attempt, e.Token, e.Category, e.Text))
		}
	}
	var calls []Call
	for _, c := range h.calls {
		names := func(g Grant) bool { return g.Message == id }
		if c.Message == id || c.Answer.ID == id || slices.ContainsFunc(c.Answer.Claimed, names) {
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.At, b.At) })
	for _, c := range calls {
		out = append(out, fmt.Sprintf("%s: [%d, %d] %s token %d → %s %s %s %v", c.Log, c.At, c.Answer.At, c.Method, c.Token,
			c.Answer.Category, c.Answer.ID, c.Answer.State, c.Answer.Claimed))
	}
	return out
}
