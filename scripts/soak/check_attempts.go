package main

import (
	"fmt"

	"github.com/sovereign-run/sovereign/protocol"
)

// checkOutcomes: each message has come to one end.
func checkOutcomes(h History) (out []Violation) {
	for _, m := range h.Messages {
		var done []protocol.Receipt
		for _, r := range m.Receipts {
			if r.Status == "completed" {
				done = append(done, r)
			}
		}
		switch {
		case m.State == "NEW" || m.State == "CLAIMED":
			out = append(out, violation(m.ID, "%s is %s at the end: %s", m.ID, m.State, m.Why))
		case len(done) > 1:
			out = append(out, violation(m.ID, "%s was completed %d times", m.ID, len(done)))
		case (m.State == "DONE") != (len(done) == 1):
			out = append(out, violation(m.ID, "%s is %s and has %d completed receipts", m.ID, m.State, len(done)))
		case m.State == "DONE":
			result := ""
			if m.Result != nil {
				result = *m.Result
			}
			if done[0].Attempt != m.Attempt {
				out = append(out, violation(m.ID, "%s was completed by attempt %d and started again", m.ID, done[0].Attempt))
			}
			if want := fmt.Sprintf("%s under %d", m.ID, done[0].Token); result != want {
				out = append(out, violation(m.ID, "%s has the result %q, not %q", m.ID, result, want))
			}
		}
	}
	return out
}

// checkStarts: there is one receipt for each start, of the process that started, and
// max_attempts bounds what was charged.
func checkStarts(h History) (out []Violation) {
	retried := map[string]bool{}
	for _, e := range h.Events {
		if e.Kind == "retried" {
			retried[e.Message] = true
		}
	}
	for _, m := range h.Messages {
		counted := 0
		for i, r := range m.Receipts {
			if r.Attempt != i+1 {
				out = append(out, violation(m.ID, "receipt %d of %s is of attempt %d", i+1, m.ID, r.Attempt))
			}
			if r.Counted {
				counted++
			}
		}
		if len(m.Receipts) != m.Attempt {
			out = append(out, violation(m.ID, "%s was started %d times and has %d receipts", m.ID, m.Attempt, len(m.Receipts)))
		}
		if m.Attempts > maxAttempts || m.Attempts > counted || !retried[m.ID] && m.Attempts != counted {
			out = append(out, violation(m.ID, "%s was charged %d attempts, of at most %d, and %d receipts count", m.ID, m.Attempts, maxAttempts, counted))
		}
	}
	for id, all := range h.grants() {
		m, found := h.messages[id]
		if !found {
			if !h.gone[id] {
				out = append(out, violation(id, "%s was claimed, and is not there", id))
			}
			continue
		}
		for _, g := range all {
			r, found := h.receipts[claimRef{id, g.Grant.Token}]
			if !found || r.Attempt != g.Grant.Attempt || r.Process != g.Life.Process || r.LeaseToken != g.Life.Lease ||
				r.Actor != g.Life.Actor || r.Slot != g.Life.Slot {
				out = append(out, violation(id, "attempt %d of %s was given to %s under token %d, and no receipt says so",
					g.Grant.Attempt, id, g.Life.Process, g.Grant.Token))
			}
			if m.Subject != g.Grant.Nonce || m.To != g.Life.Actor {
				out = append(out, violation(id, "%s is %q to %s, and was given to %s as %q", id, m.Subject, m.To, g.Life.Actor, g.Grant.Nonce))
			}
		}
	}
	return out
}

// checkJournal: events are in order, and each receipt has one.
func checkJournal(h History) (out []Violation) {
	type start struct {
		message string
		attempt int
	}
	ends := map[start]int{}
	var last uint64
	for _, e := range h.Events {
		if e.Seq <= last {
			out = append(out, violation("", "event %d comes after event %d", e.Seq, last))
		}
		last = e.Seq
		switch e.Kind {
		case "completed", "failed", "released", "dead", "parked":
			ends[start{e.Message, e.Attempt}]++
		}
	}
	for _, m := range h.Messages {
		for _, r := range m.Receipts {
			if n := ends[start{m.ID, r.Attempt}]; n != 1 {
				out = append(out, violation(m.ID, "the journal has %d ends of attempt %d of %s", n, r.Attempt, m.ID))
			}
		}
	}
	return out
}

// statusOf is the status that a verb leaves on a receipt.
func statusOf(method string) string {
	switch method {
	case protocol.MethodComplete:
		return "completed"
	case protocol.MethodRelease:
		return "released"
	}
	return "failed"
}

// checkSettles: what workers were told of their settles is what the receipts say.
func checkSettles(h History) (out []Violation) {
	type verb struct {
		claimRef
		method string
	}
	possible := map[verb]bool{}
	for _, c := range h.calls {
		if c.settles() && (c.accepted() || c.lost()) {
			possible[verb{claimRef{c.Message, c.Token}, c.Method}] = true
		}
	}
	for _, c := range h.calls {
		if !c.settles() || c.lost() || h.gone[c.Message] {
			continue
		}
		r, found := h.receipts[claimRef{c.Message, c.Token}]
		says := r.ByWorker && r.Process == c.Life.Process && r.Status == statusOf(c.Method)
		if r.Category == "cancelled" && c.Method != protocol.MethodComplete {
			says = true // an operator's word stands above it
		}
		switch {
		case c.accepted() && (!found || !says):
			out = append(out, violation(c.Message, "%s of %s under token %d was accepted, and its receipt says %q, %q",
				c.Method, c.Message, c.Token, r.Status, r.Category))
		case c.accepted() && c.Method == protocol.MethodFail && c.Dead && c.Answer.State != "DEAD":
			out = append(out, violation(c.Message, "%s was failed for good and became %s", c.Message, c.Answer.State))
		case !c.accepted() && found && says && r.Category != "cancelled" && !possible[verb{claimRef{c.Message, c.Token}, c.Method}]:
			out = append(out, violation(c.Message, "%s of %s under token %d was refused, %s, and counts all the same",
				c.Method, c.Message, c.Token, c.Answer.Category))
		}
	}
	return out
}
