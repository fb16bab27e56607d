package mailbox

import (
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
)

// An Event is one entry of the journal; what does not apply is zero.
type Event struct {
	Seq      uint64 // place in the journal, set when it is recorded
	At       time.Time
	Kind     protocol.EventKind
	Actor    string
	Slot     int
	Process  fence.Process
	Message  ID
	Attempt  int
	Token    fence.Token
	Category string
	Text     string // for people
}
