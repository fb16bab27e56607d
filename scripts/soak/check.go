package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// A Violation is a promise that was not kept.
type Violation struct {
	Rule    string
	Message string // whose history shows it, or ""
	Text    string
}

// rules are all checks. Each is a pure function of a history.
var rules = []struct {
	name  string
	check func(History) []Violation
}{
	{"store", checkStore},
	{"lost", checkSends},
	{"origin", checkOrigin},
	{"outcome", checkOutcomes},
	{"receipts", checkStarts},
	{"journal", checkJournal},
	{"tokens", checkTokens},
	{"settles", checkSettles},
	{"superseded", checkSuperseded},
	{"staged", checkStaged},
	{"keys", checkKeys},
	{"lives", checkLives},
	{"categories", checkCategories},
	{"history", checkHistories},
}

// judge returns what the history violates.
func judge(h History) (out []Violation) {
	for _, r := range rules {
		for _, v := range r.check(h) {
			v.Rule = r.name
			out = append(out, v)
		}
	}
	return out
}

func violation(message, format string, args ...any) Violation {
	return Violation{Message: message, Text: fmt.Sprintf(format, args...)}
}

// checkStore: the store is sound, and no supervisor has panicked.
func checkStore(h History) (out []Violation) {
	for _, p := range h.Verified.Problems {
		out = append(out, violation("", "verify: %s: %s", p.Where, p.What))
	}
	if int(h.Verified.Messages) != len(h.Messages) {
		out = append(out, violation("", "verify has seen %d messages, the inbox shows %d", h.Verified.Messages, len(h.Messages)))
	}
	if len(h.Stopped) != len(h.Messages) {
		out = append(out, violation("", "a stopped store shows %d messages, a supervisor %d", len(h.Stopped), len(h.Messages)))
	}
	for _, m := range h.Stopped {
		if seen := h.messages[m.ID]; seen.State != m.State || seen.Attempt != m.Attempt {
			out = append(out, violation(m.ID, "%s is %s, attempt %d, in a stopped store, and %s, attempt %d, to a supervisor",
				m.ID, m.State, m.Attempt, seen.State, seen.Attempt))
		}
	}
	for line := range strings.Lines(h.Log) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "WARNING: DATA RACE") {
			out = append(out, violation("", "a supervisor said: %s", strings.TrimSpace(line)))
		}
	}
	return out
}

// checkSends: a message whose send was answered is there, with its content, until
// an operator drops it.
func checkSends(h History) (out []Violation) {
	for _, c := range h.calls {
		if c.Method != protocol.MethodSend || c.staged() || !c.accepted() || h.gone[c.Answer.ID] {
			continue
		}
		m, found := h.messages[c.Answer.ID]
		switch {
		case !found:
			out = append(out, violation(c.Answer.ID, "%q was sent as %s, and is lost", c.Nonce, c.Answer.ID))
		case m.Subject != c.Nonce || m.To != c.To || m.Body == nil || *m.Body != c.Nonce:
			out = append(out, violation(m.ID, "%q was sent to %s as %s, which is %q to %s", c.Nonce, c.To, m.ID, m.Subject, m.To))
		}
	}
	return out
}

// checkOrigin: each message was sent by somebody who was not refused, and is there
// once.
func checkOrigin(h History) (out []Violation) {
	first := map[string]string{}
	for _, m := range h.Messages {
		if twin, twice := first[m.Subject]; twice {
			out = append(out, violation(m.ID, "%q is there twice, as %s and %s", m.Subject, twin, m.ID))
		}
		first[m.Subject] = m.ID
		made := slices.ContainsFunc(h.sends[m.Subject], func(c Call) bool {
			if c.staged() {
				return h.receipts[claimRef{c.Message, c.Token}].Status == "completed" || h.gone[c.Message]
			}
			return c.accepted() || c.lost()
		})
		made = made || slices.ContainsFunc(h.calls, func(c Call) bool {
			return slices.Contains(c.Sends, m.Subject) && (h.receipts[claimRef{c.Message, c.Token}].Status == "completed" || h.gone[c.Message])
		})
		if !made {
			out = append(out, violation(m.ID, "%s, %q, is there, and nobody has sent it", m.ID, m.Subject))
		}
	}
	return out
}

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

// checkTokens: tokens rise for each message and each slot, and none is given twice.
func checkTokens(h History) (out []Violation) {
	owner := map[protocol.Token]string{}
	give := func(t protocol.Token, to, message string) {
		if had, given := owner[t]; given && had != to {
			out = append(out, violation(message, "token %d was given to %s and to %s", t, had, to))
		}
		owner[t] = to
	}
	type slot struct {
		actor string
		slot  int
	}
	highest := map[slot]protocol.Token{}
	for _, l := range h.lives {
		s := slot{l.Actor, l.Slot}
		if l.Lease <= highest[s] {
			out = append(out, violation("", "%s/%d got lease token %d after %d", l.Actor, l.Slot, l.Lease, highest[s]))
		}
		highest[s] = l.Lease
		give(l.Lease, "the lease of "+l.Process, "")
	}
	for _, m := range h.Messages {
		var last protocol.Token
		for _, r := range m.Receipts {
			if r.Token <= last {
				out = append(out, violation(m.ID, "attempt %d of %s has token %d, after %d", r.Attempt, m.ID, r.Token, last))
			}
			last = r.Token
			give(r.Token, fmt.Sprintf("attempt %d of %s", r.Attempt, m.ID), m.ID)
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

// checkSuperseded: once a greater token of a message was given out, nothing is
// accepted under a smaller one, but the repetition of what was done before.
func checkSuperseded(h History) (out []Violation) {
	for id, grants := range h.grants() {
		for _, c := range h.of[id] {
			worker := c.settles() || c.Method == protocol.MethodRenew || c.staged()
			if !worker || !c.accepted() {
				continue
			}
			before := func(o Call) bool {
				return c.settles() && o.Method == c.Method && o.Token == c.Token && o.At < c.At && (o.accepted() || o.lost())
			}
			for _, g := range grants {
				if g.Grant.Token > c.Token && g.Answer.At < c.At && c.At != 0 && !slices.ContainsFunc(h.of[id], before) {
					out = append(out, violation(id, "%s of %s under token %d was accepted after token %d had been given out", c.Method, id, c.Token, g.Grant.Token))
				}
			}
		}
	}
	return out
}

// checkStaged: what was sent with a claim is there if and only if that attempt
// completed.
func checkStaged(h History) (out []Violation) {
	byNonce := map[string]bool{}
	for _, m := range h.Messages {
		byNonce[m.Subject] = true
	}
	droppedNonce := map[string]bool{}
	for _, c := range h.calls {
		if c.Method == methodDrop {
			droppedNonce[c.Nonce] = droppedNonce[c.Nonce] || h.gone[c.Message]
		}
	}
	for _, c := range h.calls {
		if h.gone[c.Message] {
			continue // its receipts are gone, too
		}
		completed := h.receipts[claimRef{c.Message, c.Token}].Status == "completed"
		if c.staged() && c.accepted() && !h.gone[c.Answer.ID] {
			if _, there := h.messages[c.Answer.ID]; there != completed {
				out = append(out, violation(c.Message, "%s, %q, was sent with the claim %d of %s: visible %t, completed %t",
					c.Answer.ID, c.Nonce, c.Token, c.Message, there, completed))
			}
		}
		if c.Method != protocol.MethodComplete {
			continue
		}
		for _, nonce := range c.Sends {
			if there := byNonce[nonce]; c.accepted() && !there && !droppedNonce[nonce] || there && !completed {
				out = append(out, violation(c.Message, "%q was carried by the completion %d of %s: visible %t, completed %t", nonce, c.Token, c.Message, there, completed))
			}
		}
	}
	return out
}

// checkKeys: a key names one message and one content, until that message is dropped.
func checkKeys(h History) (out []Violation) {
	type key struct{ to, key string }
	used := map[key][]Call{}
	for _, c := range h.calls {
		if c.Method == protocol.MethodSend && c.Key != "" && !c.staged() && c.accepted() {
			used[key{c.To, c.Key}] = append(used[key{c.To, c.Key}], c)
		}
	}
	for k, calls := range used {
		if slices.ContainsFunc(calls, func(c Call) bool { return h.gone[c.Answer.ID] }) {
			continue
		}
		for _, c := range calls[1:] {
			if first := calls[0]; c.Answer.ID != first.Answer.ID || c.Nonce != first.Nonce {
				out = append(out, violation(c.Answer.ID, "the key %s of %s names %s, %q, and %s, %q", k.key, k.to,
					first.Answer.ID, first.Nonce, c.Answer.ID, c.Nonce))
			}
		}
	}
	return out
}

// checkLives: lives of one slot do not overlap, and nothing survives its supervisor's
// successor.
func checkLives(h History) (out []Violation) {
	for _, l := range h.Lines {
		if l.Kind == kindOverlap || l.Kind == kindSurvivor {
			out = append(out, violation("", "%s/%d, %s, pid %d: %s: %s", l.Actor, l.Slot, l.Process, l.PID, l.Kind, l.Why))
		}
	}
	bySlot := map[string][]Line{}
	for _, l := range h.lives {
		name := fmt.Sprintf("%s/%d", l.Actor, l.Slot)
		bySlot[name] = append(bySlot[name], l)
	}
	for name, lives := range bySlot {
		slices.SortFunc(lives, func(a, b Line) int { return cmp.Compare(h.spans[a.Log][0], h.spans[b.Log][0]) })
		for i, l := range lives[1:] {
			if last := h.spans[lives[i].Log][1]; h.spans[l.Log][0] <= last {
				out = append(out, violation("", "%s: %s began before %s was heard of for the last time", name, l.Process, lives[i].Process))
			}
		}
	}
	return out
}

// expected are the refusals that a driver like this one earns.
var expected = []refusal.Category{"", unknown, refusal.ActorLeaseLost, refusal.LeaseExpired, refusal.FencingTokenStale,
	refusal.AlreadySettled, refusal.MessageNotClaimable, refusal.MessageMissing, refusal.WrongState, refusal.DuplicateKey,
	refusal.Unavailable, refusal.StoreLocked}

// checkCategories: nobody is refused for a reason that cannot be.
func checkCategories(h History) (out []Violation) {
	for _, c := range h.calls {
		switch {
		case c.Answer.Category == refusal.BadRequest && c.At == 0 && c.Message == "" && c.Token == 0:
			// A worker in sh part of whose tree was killed while it took its claim apart:
			// it names no message, and is told so.
		case !slices.Contains(expected, c.Answer.Category):
			out = append(out, violation(c.Message, "%s was refused, %s: %s", c.Method, c.Answer.Category, c.Answer.Why))
		case c.Answer.Category == refusal.MessageMissing && !h.gone[c.Message]:
			out = append(out, violation(c.Message, "%s was refused, %s, and nobody has dropped %s", c.Method, c.Answer.Category, c.Message))
		case c.Answer.Category == refusal.DuplicateKey && c.Key == "":
			out = append(out, violation(c.Message, "a send without a key was refused, %s", c.Answer.Category))
		}
	}
	return out
}
