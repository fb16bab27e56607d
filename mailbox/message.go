package mailbox

import (
	"strconv"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// An ID names a message for ever: its place in the global send sequence. Ids
// are never used again (P7). Text form: "m" and the decimal number.
type ID uint64

func (id ID) String() string {
	var text [21]byte
	return string(strconv.AppendUint(append(text[:0], 'm'), uint64(id), 10))
}

// ParseID reads the text form. What is no id is refused, bad_request.
func ParseID(s string) (ID, error) {
	digits, ok := strings.CutPrefix(s, "m")
	n, err := strconv.ParseUint(digits, 10, 53)
	if !ok || err != nil || digits[0] == '0' { // ParseUint takes no sign
		return 0, refusal.New(refusal.BadRequest, protocol.Quote(s, 60)+" is no message id",
			"an id is m and a number, as in m42", "see `sovereign inbox` for the ids")
	}
	return ID(n), nil
}

// A State is where a message stands.
type State uint8

const (
	New     State = iota + 1 // waits, perhaps for its due time
	Claimed                  // an attempt is under way
	Done                     // completed
	Dead                     // given up: by its worker, its attempts, its time to live or a person
	Parked                   // waits for a person (P4.7)
	staged                   // sent within an attempt that has not completed; visible to nobody (P8)
)

var stateNames = [...]protocol.MessageState{New: protocol.MessageNew, Claimed: protocol.MessageClaimed, Done: protocol.MessageDone,
	Dead: protocol.MessageDead, Parked: protocol.MessageParked, staged: "STAGED"}

func (s State) String() string {
	if int(s) < len(stateNames) && s > 0 {
		return string(stateNames[s])
	}
	return "STATE" + strconv.Itoa(int(s))
}

// ParseState reads a state's name in either case; "" and unknown names are
// refused, bad_request.
func ParseState(s string) (State, error) {
	for st := New; st <= Parked; st++ {
		if strings.EqualFold(s, string(stateNames[st])) {
			return st, nil
		}
	}
	return 0, refusal.New(refusal.BadRequest, protocol.Quote(s, 60)+" is no state",
		"the states are NEW, CLAIMED, DONE, DEAD and PARKED", "name one of these")
}

// Outgoing is a message that is to be sent. Only To is required.
type Outgoing struct {
	To       string
	From     string // the sender's actor, or what the operator says
	Subject  string
	Headers  map[string]string
	Body     []byte
	Key      string        // idempotency key, per recipient; "" none
	KeyTTL   time.Duration // 0: the key is held while its message exists
	Delay    time.Duration // 0: at once
	At       time.Time     // zero: not given; wall clock; excludes Delay
	Priority int           // -100 … 100, higher first
	Group    string        // one message of a group at a time, in send order; "" none
	TTL      time.Duration // not claimed for so long it is DEAD; 0: it waits for ever
}

// Sent is the answer to a send.
type Sent struct {
	ID        ID
	Duplicate bool // ID is that of an earlier message with the same key and content

	blocked bool // by another message of its group
}

// A Message is one message as people and programs see it.
type Message struct {
	ID          ID
	To          string
	From        string
	Subject     string
	Headers     map[string]string
	State       State
	Priority    int
	Group       string
	Key         string
	Attempt     int // ordinal of the last start, 0 before the first
	Attempts    int // charged starts since the last retry by hand
	MaxAttempts int
	Size        int // bytes of the body
	CreatedAt   time.Time
	AvailableAt time.Time // due time; for a message that waits after a failure, the end of its backoff
	LapsesAt    time.Time // a NEW message that is not claimed by then is DEAD; zero: never
	EndedAt     time.Time // zero unless DONE, DEAD or PARKED
	Claim       *Claim    // of a CLAIMED message
	LastFailure *LastFailure
	Deaths      int // processes that died in a row while they worked on it
}

// A Claim is the lease on a message: one attempt.
type Claim struct {
	Holder    fence.Holder
	Token     fence.Token
	Attempt   int
	StartedAt time.Time
	ExpiresAt time.Time     // for people
	Remaining time.Duration // for programs; 0 when expired
	Progress  string
}

// LastFailure says how the last failed attempt ended.
type LastFailure struct {
	Category Category
	Reason   string
	At       time.Time
}

// A Receipt is the immutable record of how an attempt ended (P4.2).
type Receipt struct {
	Message    ID
	Attempt    int
	Token      fence.Token
	LeaseToken fence.Token
	Process    fence.Process
	Slot       fence.Slot
	StartedAt  time.Time
	EndedAt    time.Time
	Status     Status
	Category   Category
	Counted    bool
	ByWorker   bool // settled by the worker itself, not by the supervisor or recovery
	Reason     string
	ExitCode   int    // -1: none
	Signal     string // name without SIG, "" none

	verb    Status // what was asked for: a person's cancel makes a release a failure
	expired bool   // its time was up: asked again, lease_expired answers (P1.10)
}

// A Status is the coarse end of an attempt.
type Status string

const (
	Completed Status = "completed"
	Failed    Status = "failed"
	Released  Status = "released"
)

// A Category is the exact end of an attempt; the names are those of
// docs/interface.md.
type Category string

const (
	CategoryCompleted       Category = "completed"
	CategoryWorkerLost      Category = "worker_lost"
	CategoryExitStatus      Category = "exit_status"
	CategoryTimeout         Category = "timeout"
	CategoryClaimExpired    Category = "claim_expired"
	CategoryNoProgress      Category = "no_progress"
	CategoryResultTooLarge  Category = "result_too_large" // of a task
	CategoryFailedByWorker  Category = "failed_by_worker"
	CategoryBadMessage      Category = "bad_message"
	CategoryCancelled       Category = "cancelled"
	CategoryStaleCompletion Category = "stale_completion"
	CategoryExpired         Category = "expired"     // of a message, not of an attempt: its time to live was over
	CategoryReleased        Category = "released"    // not counted
	CategoryDeferred        Category = "deferred"    // not counted
	CategoryInterrupted     Category = "interrupted" // not counted
)

// A Detail is all that is known of one message.
type Detail struct {
	Message
	Body            []byte
	Result          []byte
	ResultTruncated bool
	Why             string        // why it is not running now; "" where it is running or has ended
	OnRecord        string        // Why without Poison
	Ready           bool          // NEW, and nothing on record holds it back: somebody has to take it
	Poison          string        // that it seems to kill those who work on it; "" where it does not
	BlockedBy       ID            // of a NEW message: the one of its group that comes first, 0 none
	Receipts        []Receipt     // of the last attempts; more than a thousand, or of half a MiB, are not read
	TTL             time.Duration // with which it was sent; 0: none
	Omitted         int           // attempts before those of Receipts
	KeyFree         bool          // it has a key, and holds it no more: its time is over, or a later message holds it
	KeyUntil        time.Time     // until when it holds its key; zero = as long as it exists, or it holds none
}

// A Delivery is a claimed message on its way to its worker.
type Delivery struct {
	ID        ID
	From      string
	Subject   string
	Headers   map[string]string
	Body      []byte
	Attempt   int
	Token     fence.Token
	ExpiresAt time.Time
	Remaining time.Duration
	Again     bool // the process held it before it asked: this is a repeat
}

// A Ref names a claim as its holder knows it.
type Ref struct {
	ID    ID
	Token fence.Token
}
