package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// The phases of a message in the model.
const (
	phaseOpen    = "open" // NEW, or ended by the policy: DEAD or PARKED
	phaseClaimed = "claimed"
	phaseDone    = "done"
	phaseDead    = "dead" // by somebody's word
)

// The operations of the model beside the methods.
const (
	opAgain  = "again"  // a claim that is held is granted again
	opEnd    = "end"    // an attempt's receipt is written
	opRepeat = "repeat" // a settle is answered with yes
	opRead   = "read"
)

// A message as the model has it. It is a value.
type modelState struct {
	phase    string
	token    protocol.Token
	greatest protocol.Token
	settled  string // " TOKEN:METHOD" of each end by a worker
}

type modelInput struct {
	op    string
	token protocol.Token
	verb  string // of an end by a worker, of a settle
	dead  bool
}

type modelOutput struct {
	category refusal.Category
	state    string // of a read
}

// messageModel is one message as its workers and operators see it. What may or may
// not have been done has both outcomes.
var messageModel = porcupine.NondeterministicModel{
	Init:  func() []any { return []any{modelState{phase: phaseOpen}} },
	Step:  stepMessage,
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		in, out := input.(modelInput), output.(modelOutput)
		return fmt.Sprintf("%s %s %d → %s%s", in.op, in.verb, in.token, out.category, out.state)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}

func stepMessage(state, input, output any) []any {
	s, in, out := state.(modelState), input.(modelInput), output.(modelOutput)
	current := s.phase == phaseClaimed && s.token == in.token
	only := func(yes bool, next modelState) []any {
		if yes {
			return []any{next}
		}
		return nil
	}
	entry := fmt.Sprintf(" %d:%s", in.token, in.verb)
	switch in.op {
	case protocol.MethodClaim:
		next := s
		next.phase, next.token, next.greatest = phaseClaimed, in.token, in.token
		return only(s.phase == phaseOpen && in.token > s.greatest, next)
	case opAgain, protocol.MethodRenew, protocol.MethodSend:
		switch out.category {
		case "":
			return only(current, s)
		case refusal.FencingTokenStale:
			return only(!current, s)
		}
		return []any{s}
	case opEnd:
		next := s
		next.phase = phaseOpen
		if in.verb != "" {
			next.settled += entry + ";"
		}
		switch {
		case in.verb == protocol.MethodComplete || out.state == "completed":
			next.phase = phaseDone
		case in.dead:
			next.phase = phaseDead
		}
		return only(current, next)
	case opRepeat:
		switch out.category {
		case "":
			return only(strings.Contains(s.settled, entry+";"), s)
		case refusal.FencingTokenStale:
			return only(!current, s)
		case refusal.AlreadySettled:
			return only(strings.Contains(s.settled, fmt.Sprintf(" %d:", in.token)), s)
		}
		return []any{s}
	case methodCancel:
		next := s
		if s.phase == phaseOpen {
			next.phase = phaseDead
		}
		able := s.phase == phaseOpen || s.phase == phaseClaimed
		return operated(s, next, able, out.category)
	case methodRetry:
		next := s
		next.phase = phaseOpen
		return operated(s, next, s.phase == phaseOpen || s.phase == phaseDead, out.category)
	case opRead:
		want := map[string]bool{"DONE": s.phase == phaseDone, "DEAD": s.phase == phaseOpen || s.phase == phaseDead, "PARKED": s.phase == phaseOpen}
		return only(want[out.state], s)
	}
	return nil
}

// operated are the states after an operator's request.
func operated(s, next modelState, able bool, category refusal.Category) []any {
	switch {
	case category == "" && !able:
		return nil
	case category == "":
		return []any{next}
	case category == unknown && able && next != s:
		return []any{s, next}
	}
	return []any{s}
}

// operations is the history of one message that is in the store.
func (h History) operations(m protocol.MessageDetail, grants []granted, end int64) (ops []porcupine.Operation) {
	add := func(in modelInput, out modelOutput, call, back int64) {
		ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: in, Output: out, Call: call, Return: back})
	}
	told := map[protocol.Token]bool{}
	began := map[protocol.Token]int64{}
	for _, g := range grants {
		op := protocol.MethodClaim
		if told[g.Grant.Token] {
			op = opAgain
		} else {
			began[g.Grant.Token] = g.At
		}
		told[g.Grant.Token] = true
		add(modelInput{op: op, token: g.Grant.Token}, modelOutput{}, g.At, min(g.Answer.At, end))
	}
	for _, r := range m.Receipts {
		if !told[r.Token] { // the answer was lost
			add(modelInput{op: protocol.MethodClaim, token: r.Token}, modelOutput{}, 0, end)
		}
		in := modelInput{op: opEnd, token: r.Token, dead: r.Category == "bad_message" || r.Category == "cancelled"}
		call, back := began[r.Token], end
		if r.ByWorker {
			in.verb = map[string]string{"completed": protocol.MethodComplete, "released": protocol.MethodRelease, "failed": protocol.MethodFail}[r.Status]
			call = int64(math.MaxInt64)
			for _, c := range h.of[m.ID] {
				mine := c.settles() && c.Token == r.Token && (c.accepted() || c.lost())
				if !mine || c.Method != in.verb && r.Category != "cancelled" {
					continue
				}
				call = min(call, c.At)
				if c.accepted() {
					back = min(back, c.Answer.At)
				}
				in.dead = in.dead || c.Dead
			}
			if call > back {
				call = began[r.Token]
			}
		}
		add(in, modelOutput{state: r.Status}, call, back)
	}
	for _, c := range h.of[m.ID] {
		if c.At == 0 {
			continue // a shell wrote no time
		}
		out := modelOutput{category: c.Answer.Category}
		switch {
		case c.settles() && !c.lost():
			if r := h.receipts[claimRef{m.ID, c.Token}]; r.Category != "cancelled" {
				add(modelInput{op: opRepeat, token: c.Token, verb: c.Method}, out, c.At, c.Answer.At)
			}
		case (c.Method == protocol.MethodRenew || c.staged()) && !c.lost():
			add(modelInput{op: c.Method, token: c.Token}, out, c.At, c.Answer.At)
		case c.Method == methodCancel || c.Method == methodRetry:
			add(modelInput{op: c.Method}, out, c.At, min(c.Answer.At, end))
		}
	}
	add(modelInput{op: opRead}, modelOutput{state: string(m.State)}, end, end+1)
	return ops
}

// historyLimit is how long the search for an order may take for one message.
const historyLimit = 2 * time.Minute

// checkHistories: the answers about each message are those of some order in which
// each happened at one instant.
func checkHistories(h History) (out []Violation) {
	var end int64
	for _, l := range h.Lines {
		end = max(end, l.At)
	}
	grants := h.grants()
	model := messageModel.ToModel()
	for _, m := range h.Messages {
		if h.gone[m.ID] {
			continue
		}
		ops := h.operations(m, grants[m.ID], end+1)
		switch porcupine.CheckOperationsTimeout(model, ops, historyLimit) {
		case porcupine.Illegal:
			out = append(out, violation(m.ID, "no order explains the %d operations on %s: %s", len(ops), m.ID, describe(ops)))
		case porcupine.Unknown:
			out = append(out, violation(m.ID, "whether an order explains the %d operations on %s could not be found out", len(ops), m.ID))
		}
	}
	return out
}

func describe(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "\n    [%d, %d] %s", op.Call, op.Return, messageModel.DescribeOperation(op.Input, op.Output))
	}
	return b.String()
}
