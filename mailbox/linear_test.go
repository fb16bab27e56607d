package mailbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// One message, as its callers see it.
type linearState struct {
	state    mailbox.State
	process  int
	token    fence.Token
	greatest fence.Token
	settled  string // " TOKEN:PROCESS:verb" for each settle that was accepted
}

type linearInput struct {
	op      string // claim, complete, release, sweep, cancel
	message mailbox.ID
	process int
	token   fence.Token
}

type linearOutput struct {
	ok       bool
	token    fence.Token
	repeated bool
	refused  refusal.Category
}

var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[mailbox.ID][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(linearInput).message
			by[id] = append(by[id], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return linearState{state: mailbox.New} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		mine := s.state == mailbox.Claimed && s.process == in.process
		entry := fmt.Sprintf(" %d:%d:%s", in.token, in.process, in.op)
		switch in.op {
		case "claim":
			switch {
			case out.ok && mine && out.token == s.token: // again
				return true, s
			case out.ok && out.token > s.greatest && s.state != mailbox.Done && s.state != mailbox.Dead:
				// NEW, or CLAIMED and expired: then a later settle of the old token must fail.
				s.state, s.process, s.token, s.greatest = mailbox.Claimed, in.process, out.token, out.token
				return true, s
			}
			return !out.ok, s
		case "complete", "release":
			switch {
			case out.repeated:
				return strings.Contains(s.settled, entry), s
			case out.ok:
				if !mine || s.token != in.token {
					return false, s // accepted under a superseded token
				}
				s.settled += entry
				s.state = mailbox.New
				if in.op == "complete" {
					s.state = mailbox.Done
				}
				return true, s
			case out.refused == refusal.AlreadySettled:
				return strings.Contains(s.settled, fmt.Sprintf(" %d:%d:", in.token, in.process)), s
			}
			return out.refused == refusal.LeaseExpired || !mine || s.token != in.token, s
		case "sweep":
			if out.ok {
				if s.state != mailbox.Claimed || s.token != in.token {
					return false, s
				}
				s.state = mailbox.New
			}
			return true, s
		}
		return false, s
	},
}

// P2.5, P3.2, P3.9, P4.5: whatever claims, settles and sweeps of the same messages
// run at once, the answers are those of some order in which each happened at one
// instant: one winner a claim, no settle under a superseded token. Remove the
// token comparison in currentTx or the state check in claimTx and this fails.
func TestHistory_IsLinearizable(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Retry = mailbox.Retry{MaxAttempts: 1 << 30}
	h := mailboxtest.Open(t, actor)
	ctx := context.Background()
	const processes, messages, steps = 8, 12, 200
	var holders []fence.Holder
	for i := range processes {
		holders = append(holders, h.MustBegin(t, "work", i+1))
	}
	var ids []mailbox.ID
	for range messages {
		ids = append(ids, h.MustSend(t, "work", ""))
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	tokens := map[mailbox.ID][]fence.Token{}
	began := time.Now()
	record := func(client int, in linearInput, do func() linearOutput) {
		call := time.Since(began)
		out := do()
		end := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		if out.ok && in.op == "claim" {
			tokens[in.message] = append(tokens[in.message], out.token)
		}
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(end)})
	}
	var all sync.WaitGroup
	for i := range processes {
		for twin := range 2 { // a process is several goroutines
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(twin)))
				for range steps {
					id := ids[r.IntN(len(ids))]
					mu.Lock()
					known := tokens[id]
					token := fence.Token(0)
					if len(known) > 0 {
						token = known[max(0, len(known)-1-r.IntN(3))]
					}
					mu.Unlock()
					in := linearInput{message: id, process: i, token: token}
					client := i*2 + twin
					switch n := r.IntN(20); {
					case n < 9:
						in.op = "claim"
						record(client, in, func() linearOutput {
							got, err := h.Box.Claim(ctx, holders[i], mailbox.ClaimRequest{ID: id})
							if err != nil {
								return linearOutput{refused: refusal.Of(err).Category}
							}
							return linearOutput{ok: true, token: got[0].Token}
						})
					case n < 17:
						in.op = "release"
						o := mailboxtest.Released()
						if r.IntN(12) == 0 {
							in.op, o = "complete", mailboxtest.Completed("")
						}
						record(client, in, func() linearOutput {
							s, err := h.Box.Settle(ctx, holders[i], mailbox.Ref{ID: id, Token: token}, o, nil)
							if err != nil {
								return linearOutput{refused: refusal.Of(err).Category}
							}
							return linearOutput{ok: true, repeated: s.Repeated}
						})
					case n < 19:
						in.op = "sweep"
						record(client, in, func() linearOutput {
							ok, _ := h.Box.Sweep(ctx, mailbox.Ref{ID: id, Token: token})
							return linearOutput{ok: ok}
						})
					default:
						h.Advance(5 * time.Second)
					}
				}
			})
		}
	}
	all.Wait()
	result, info := porcupine.CheckOperationsVerbose(linearModel, history, 10*time.Minute)
	if result != porcupine.Ok {
		path := t.ArtifactDir() + "/history.html"
		_ = porcupine.VisualizePath(linearModel, info, path)
		t.Fatalf("the history of %d operations is %s; see %s", len(history), result, path)
	}
}
