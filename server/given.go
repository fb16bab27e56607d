package server

import (
	"sync"

	"github.com/sovereign-run/sovereign/mailbox"
)

// given knows which claims are on their way to their worker, so that one whose
// answer could not be written is released, and one that another answer brought is
// not: a worker that lost its connection asks again on the next, and the old
// answer may fail after the new one has arrived (P3.3).
type given struct {
	mu     sync.Mutex // guards claims
	claims map[mailbox.Ref]giving
}

// A giving is a claim in at least one answer.
type giving struct {
	answers   int // not written yet
	delivered bool
}

// enter says that a claim is in an answer. again: the process held it before it
// asked, so an earlier answer brought it.
func (g *given) enter(d mailbox.Delivery) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claims == nil {
		g.claims = map[mailbox.Ref]giving{}
	}
	ref := mailbox.Ref{ID: d.ID, Token: d.Token}
	c, several := g.claims[ref]
	if !several {
		c.delivered = d.Again
	}
	c.answers++
	g.claims[ref] = c
}

// leave says that an answer with the claim was written, or could not be, and
// reports whether nobody has got the claim.
func (g *given) leave(d mailbox.Delivery, sent bool) (nobody bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ref := mailbox.Ref{ID: d.ID, Token: d.Token}
	c := g.claims[ref]
	c.delivered = c.delivered || sent
	if c.answers--; c.answers > 0 {
		g.claims[ref] = c
		return false
	}
	delete(g.claims, ref)
	return !c.delivered
}
