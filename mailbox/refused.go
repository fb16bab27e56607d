package mailbox

import (
	"sync"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// maxRefused bounds the refusals remembered.
const maxRefused = 1024

// refused remembers which refusals are in the journal, so that a stale worker
// that asks again and again is written down once for each claim and verb.
type refused struct {
	mu   sync.Mutex // guards all below
	seen map[refusedKey]bool
	ring [maxRefused]refusedKey
	next int
}

type refusedKey struct {
	process fence.Process
	ref     Ref
	verb    string
}

func (r *refused) first(k refusedKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[k] {
		return false
	}
	if r.seen == nil {
		r.seen = map[refusedKey]bool{}
	}
	delete(r.seen, r.ring[r.next])
	r.ring[r.next] = k
	r.next = (r.next + 1) % maxRefused
	r.seen[k] = true
	return true
}

// refuse notes in the journal that a write was refused by the fence, and returns
// err. Other refusals are the asker's own business.
func (b *Box) refuse(h fence.Holder, ref Ref, verb string, err error) error {
	switch refusal.Of(err).Category {
	case refusal.FencingTokenStale, refusal.LeaseExpired, refusal.ActorLeaseLost, refusal.NotAddressee:
	default:
		return err
	}
	if b.refused.first(refusedKey{h.Process, ref, verb}) {
		b.Note(Event{Kind: protocol.EventRefused, Actor: h.Slot.Actor, Slot: h.Slot.Number, Process: h.Process, Message: ref.ID,
			Token: ref.Token, Category: string(refusal.Of(err).Category), Text: verb + ": " + err.Error()})
	}
	return err
}

// verb names a settle for the journal.
func (v Verdict) verb() string {
	switch verbStatus(v) {
	case Completed:
		return "complete"
	case Released:
		return "release"
	default:
		return "fail"
	}
}
