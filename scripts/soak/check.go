package main

import (
	"fmt"
	"slices"
	"strings"

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
