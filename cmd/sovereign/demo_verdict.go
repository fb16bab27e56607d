package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
)

// The headers by which a follow-up names the attempt that staged it.
const (
	demoParent = "parent"
	demoToken  = "token"
)

// A demoCut is an attempt that the demonstration did not let end by itself.
type demoCut struct {
	Message string
	Attempt int
	How     string
}

// What became of the worker of a demoCut.
const (
	demoKilled   = "killed"   // the worker got SIGKILL
	demoFrozen   = "frozen"   // the worker stood still until its claim had expired
	demoOrphaned = "orphaned" // the supervisor got SIGKILL
)

// A demoEvidence is what was done, and what was read from the store when nothing
// ran any more.
type demoEvidence struct {
	Sent     []string // the orders' messages
	Cut      []demoCut
	Staged   []demoReport // attempts that have staged a follow-up, complete or not
	Refused  []demoReport
	Messages []protocol.MessageDetail
	Events   []protocol.Event
}

// A demoVerdict says whether the guarantees held.
type demoVerdict struct {
	OK       bool          `json:"ok"`
	Seconds  float64       `json:"seconds"`
	Checks   []demoCheck   `json:"checks"`
	Messages []demoMessage `json:"messages"`
	Refused  []demoRefusal `json:"refused"`
}

// A demoCheck is one guarantee, and what speaks against it.
type demoCheck struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
}

// A demoMessage is what became of one message.
type demoMessage struct {
	ID        string   `json:"id"`
	To        string   `json:"to"`
	Order     string   `json:"order"`
	State     string   `json:"state"`
	Receipts  []string `json:"receipts"` // categories, in the order of the attempts
	FollowUps []string `json:"follow_ups"`
}

// A demoRefusal is a completion that came too late.
type demoRefusal struct {
	Message  string         `json:"message"`
	Attempt  int            `json:"attempt"`
	Token    protocol.Token `json:"token"`
	Category string         `json:"category"`
}

// judgeDemo holds the evidence against the guarantees. It depends on nothing
// else.
func judgeDemo(e demoEvidence) demoVerdict {
	v := demoVerdict{OK: true, Messages: []demoMessage{}, Refused: []demoRefusal{}}
	for _, check := range []struct {
		name  string
		judge func(demoEvidence) []string
	}{
		{"every order went all the way", judgeWay},
		{"every message has exactly one canonical outcome", judgeOutcomes},
		{"every attempt has exactly one receipt, and a greater token", judgeReceipts},
		{"what died or froze was not taken for done", judgeCuts},
		{"what came too late was refused", judgeRefusals},
		{"follow-ups are visible exactly for completed attempts", judgeFollowUps},
	} {
		problems := check.judge(e)
		v.OK = v.OK && len(problems) == 0
		v.Checks = append(v.Checks, demoCheck{Name: check.name, OK: len(problems) == 0, Problems: problems})
	}
	children := followUps(e)
	for _, m := range e.Messages {
		row := demoMessage{ID: m.ID, To: m.To, Order: m.Subject, State: string(m.State), Receipts: []string{}, FollowUps: []string{}}
		for _, r := range m.Receipts {
			row.Receipts = append(row.Receipts, r.Category)
		}
		for _, child := range children[m.ID] {
			row.FollowUps = append(row.FollowUps, child.ID)
		}
		v.Messages = append(v.Messages, row)
	}
	for _, r := range e.Refused {
		v.Refused = append(v.Refused, demoRefusal{Message: r.Message, Attempt: r.Attempt, Token: r.Token, Category: r.Category})
	}
	return v
}

// judgeWay: each order that was sent is there, and has one message for each
// station and no other.
func judgeWay(e demoEvidence) (problems []string) {
	seen := map[string][]string{} // the messages of an order at a station
	at := map[string]protocol.MessageDetail{}
	for _, m := range e.Messages {
		seen[m.To+" "+m.Subject] = append(seen[m.To+" "+m.Subject], m.ID)
		at[m.ID] = m
	}
	for _, id := range e.Sent {
		m, there := at[id]
		if !there {
			problems = append(problems, id+" was sent and is not there")
			continue
		}
		for _, station := range demoStations {
			if n := len(seen[station+" "+m.Subject]); n != 1 {
				problems = append(problems, fmt.Sprintf("%s has %s for %s", m.Subject, plural(int64(n), "message"), station))
			}
		}
	}
	if want := len(e.Sent) * len(demoStations); len(e.Messages) != want {
		problems = append(problems, fmt.Sprintf("there are %d messages instead of %d", len(e.Messages), want))
	}
	if len(e.Sent) == 0 {
		problems = append(problems, "nothing was sent")
	}
	return problems
}

// judgeOutcomes: each message is DONE, one receipt of its says completed, the
// last one, and the journal tells of it once.
func judgeOutcomes(e demoEvidence) (problems []string) {
	told := map[string]int{}
	for _, event := range e.Events {
		if event.Kind == "completed" {
			told[event.Message]++
		}
	}
	for _, m := range e.Messages {
		if m.State != protocol.MessageDone {
			problems = append(problems, fmt.Sprintf("%s is %s", m.ID, m.State))
		}
		if done := completions(m); len(done) != 1 || m.Receipts[len(m.Receipts)-1] != done[0] {
			problems = append(problems, fmt.Sprintf("%s has %d canonical outcomes", m.ID, len(done)))
		}
		if told[m.ID] != 1 {
			problems = append(problems, fmt.Sprintf("the journal completes %s %d times", m.ID, told[m.ID]))
		}
	}
	return problems
}

func completions(m protocol.MessageDetail) (done []protocol.Receipt) {
	for _, r := range m.Receipts {
		if r.Status == "completed" {
			done = append(done, r)
		}
	}
	return done
}

// judgeReceipts: the receipts of a message are those of its attempts, each with
// a token greater than the one before.
func judgeReceipts(e demoEvidence) (problems []string) {
	for _, m := range e.Messages {
		if len(m.Receipts) != m.Attempt {
			problems = append(problems, fmt.Sprintf("%s was started %d times and has %s", m.ID, m.Attempt, plural(int64(len(m.Receipts)), "receipt")))
		}
		var last protocol.Token
		for i, r := range m.Receipts {
			if r.Attempt != i+1 {
				problems = append(problems, fmt.Sprintf("receipt %d of %s is of attempt %d", i+1, m.ID, r.Attempt))
			}
			if r.Token <= last {
				problems = append(problems, fmt.Sprintf("attempt %d of %s has token %d, after %d", r.Attempt, m.ID, r.Token, last))
			}
			last = r.Token
		}
	}
	return problems
}

// judgeCuts: the attempts that were cut off have failed receipts that say why, and
// were followed by others.
func judgeCuts(e demoEvidence) (problems []string) {
	category := map[string]string{demoKilled: "worker_lost", demoFrozen: "claim_expired", demoOrphaned: "worker_lost"}
	count := map[string]int{}
	for _, cut := range e.Cut {
		count[cut.How]++
		r, found := receiptOf(e, cut.Message, cut.Attempt)
		switch {
		case !found:
			problems = append(problems, fmt.Sprintf("attempt %d of %s was %s and has no receipt", cut.Attempt, cut.Message, cut.How))
		case r.Status != "failed" || r.Category != category[cut.How] || r.ByWorker:
			problems = append(problems, fmt.Sprintf("attempt %d of %s was %s and its receipt says %s, %s",
				cut.Attempt, cut.Message, cut.How, r.Status, r.Category))
		case cut.How == demoKilled && r.Signal != "KILL":
			problems = append(problems, fmt.Sprintf("the receipt of attempt %d of %s names signal %q", cut.Attempt, cut.Message, r.Signal))
		}
		if _, again := receiptOf(e, cut.Message, cut.Attempt+1); !again {
			problems = append(problems, cut.Message+" was not handed out again")
		}
	}
	for _, how := range []string{demoKilled, demoFrozen, demoOrphaned} {
		if count[how] == 0 {
			problems = append(problems, "no attempt was "+how)
		}
	}
	return problems
}

func receiptOf(e demoEvidence, message string, attempt int) (protocol.Receipt, bool) {
	for _, m := range e.Messages {
		if m.ID != message {
			continue
		}
		i := slices.IndexFunc(m.Receipts, func(r protocol.Receipt) bool { return r.Attempt == attempt })
		if i >= 0 {
			return m.Receipts[i], true
		}
	}
	return protocol.Receipt{}, false
}

// judgeRefusals: the worker that stood still completed, was refused by its fence,
// and the outcome is another process's.
func judgeRefusals(e demoEvidence) (problems []string) {
	for _, cut := range e.Cut {
		if cut.How != demoFrozen {
			continue
		}
		if !slices.ContainsFunc(e.Refused, func(r demoReport) bool { return r.Message == cut.Message && r.Attempt == cut.Attempt }) {
			problems = append(problems, fmt.Sprintf("the late completion of %s was not refused", cut.Message))
		}
		late, _ := receiptOf(e, cut.Message, cut.Attempt)
		for _, m := range e.Messages {
			if done := completions(m); m.ID == cut.Message && len(done) == 1 && done[0].Process == late.Process {
				problems = append(problems, fmt.Sprintf("%s was completed by the process that came too late", m.ID))
			}
		}
	}
	for _, r := range e.Refused {
		if r.Category != "fencing_token_stale" && r.Category != "lease_expired" {
			problems = append(problems, fmt.Sprintf("attempt %d of %s was refused as %s", r.Attempt, r.Message, r.Category))
		}
		if receipt, _ := receiptOf(e, r.Message, r.Attempt); receipt.Status == "completed" {
			problems = append(problems, fmt.Sprintf("attempt %d of %s was refused and counts all the same", r.Attempt, r.Message))
		}
	}
	return problems
}

// judgeFollowUps: what an attempt staged is visible where it completed, once, and
// nowhere else.
func judgeFollowUps(e demoEvidence) (problems []string) {
	children := followUps(e)
	for _, m := range e.Messages {
		want := 1
		if m.To == demoMail {
			want = 0 // the end of the way
		}
		if n := len(children[m.ID]); n != want {
			problems = append(problems, fmt.Sprintf("%s has %s", m.ID, plural(int64(n), "visible follow-up")))
		}
		for _, child := range children[m.ID] {
			by, err := strconv.ParseUint(child.Headers[demoToken], 10, 53)
			done := completions(m)
			if err != nil || len(done) != 1 || protocol.Token(by) != done[0].Token {
				problems = append(problems, fmt.Sprintf("%s was staged under token %s, which did not complete %s",
					child.ID, strings.TrimSpace(child.Headers[demoToken]), m.ID))
			}
		}
	}
	for _, r := range e.Staged {
		there := slices.ContainsFunc(e.Messages, func(m protocol.MessageDetail) bool { return m.ID == r.Staged })
		receipt, _ := receiptOf(e, r.Message, r.Attempt)
		if completed := receipt.Status == "completed"; there != completed {
			problems = append(problems, fmt.Sprintf("%s, staged by attempt %d of %s: visible %t, completed %t",
				r.Staged, r.Attempt, r.Message, there, completed))
		}
	}
	if len(e.Staged) <= len(e.Messages)-len(e.Sent) {
		problems = append(problems, "no attempt staged a follow-up in vain")
	}
	return problems
}

// followUps are the visible messages that attempts staged, by the message that
// they were attempts of.
func followUps(e demoEvidence) map[string][]protocol.MessageDetail {
	out := map[string][]protocol.MessageDetail{}
	for _, m := range e.Messages {
		if parent := m.Headers[demoParent]; parent != "" {
			out[parent] = append(out[parent], m)
		}
	}
	return out
}
