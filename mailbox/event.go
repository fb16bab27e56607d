package mailbox

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
)

// An Event is one entry of the journal. Kind is a constant name in snake case
// (started, exited, gave_up, completed, failed, …); what does not apply is
// zero.
type Event struct {
	Seq      uint64 // place in the journal, set when it is recorded
	At       time.Time
	Kind     string
	Actor    string
	Slot     int
	Process  fence.Process
	Message  ID
	Attempt  int
	Token    fence.Token
	Category string
	Text     string // for people
}
