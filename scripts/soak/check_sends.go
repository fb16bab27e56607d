package main

import (
	"slices"

	"github.com/sovereign-run/sovereign/protocol"
)

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
