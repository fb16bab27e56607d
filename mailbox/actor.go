package mailbox

import "time"

// An Actor is what the mailbox knows of an address: recorded in the store, so
// that sends are checked without a supervisor too. It is stored as JSON, in
// which durations are nanoseconds.
type Actor struct {
	Name      string
	Mailbox   bool // false: a daemon, nobody can send to it
	ClaimTTL  time.Duration
	Timeout   time.Duration // the longest one message may take; 0 = no limit
	Progress  time.Duration // the longest that a claim's progress may stay the same; 0 = no limit
	Auto      bool          // claims are kept while their process lives and is within Timeout
	Retry     Retry
	Park      bool // on_worker_lost: park
	Retention Retention
	Limit     int64  // messages NEW, CLAIMED or reserved; 0 = no limit
	MaxBody   int64  // bytes; 0 = the store's bound
	Reclaim   string // workspace.reclaim: always, on_success or never; "" = always
	Removed   bool   // not in the last actors.yaml
	Stopped   bool   // by an operator, durable
	Paused    bool   // by an operator, durable: no deliveries
}

// heldBack reports whether messages of a are not handed out for now.
func (a Actor) heldBack() bool { return a.Paused || a.Removed }

// claimTTL is ClaimTTL with its default.
func (a Actor) claimTTL() time.Duration {
	if a.ClaimTTL <= 0 {
		return time.Minute
	}
	return a.ClaimTTL
}

// Retention is how long ended messages and events are kept, and how many of them
// at most; zero is for ever, and any number. Events are kept as long, and as many,
// as the actor that keeps most says. PARKED messages wait for a person, however long.
type Retention struct {
	Done, Dead, Events                time.Duration
	DoneCount, DeadCount, EventsCount int64
}

// Retry says when a failed message is tried again, and how often.
type Retry struct {
	MaxAttempts    int
	Initial, Max   time.Duration
	Factor, Jitter float64
}

// Counts are an inbox's messages by state. Reserved are staged sends whose place
// is taken.
type Counts struct {
	New, Claimed, Done, Dead, Parked, Reserved int64
}
