package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sovereign-run/sovereign/protocol"
)

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
