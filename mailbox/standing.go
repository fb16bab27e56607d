package mailbox

import (
	"errors"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
)

// A Standing is how a message stands that was chosen from a list, and is changed after
// it: one to which something has happened in between is not the one that was meant. Zero
// fields ask for nothing.
type Standing struct {
	State   State
	EndedBy time.Time // it has not ended later
}

// ErrStandsOtherwise is in the chain of the refusal, wrong_state, of a message that does
// not stand as it is said to. Nothing was changed.
var ErrStandsOtherwise = errors.New("the message has changed since it was chosen")

// check is the same in the transaction that changes the message.
func (s Standing) check(rec *record) error {
	if (s.State == 0 || rec.state == s.State) && (s.EndedBy.IsZero() || !rec.endedAt.After(s.EndedBy)) {
		return nil
	}
	return refusal.Of(wrongState(rec, "it has changed since it was chosen", "")).Because(ErrStandsOtherwise)
}
