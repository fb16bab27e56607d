package mailbox

import "time"

// A Verdict is what an attempt's end does to its message.
type Verdict uint8

const (
	// Complete: DONE, staged sends and result become visible.
	Complete Verdict = iota + 1
	// FailAttempt: charged; NEW after the backoff, or DEAD at max_attempts.
	FailAttempt
	// Unreported: charged; the worker did not report the outcome itself. Like
	// FailAttempt, or PARKED where the actor's policy is park (P4.7).
	Unreported
	// Defer: not charged; NEW after the backoff (exit 75).
	Defer
	// GiveBack: not charged; NEW at once (release).
	GiveBack
	// Interrupt: not charged; NEW at once, or PARKED where the policy is park.
	Interrupt
	// Kill: charged; DEAD at once (bad message, fail with dead, cancelled).
	Kill
)

// An Outcome is how an attempt ended, whoever says so.
type Outcome struct {
	Verdict         Verdict
	Category        Category
	Reason          string         // any bytes; cut to 4 KiB and escaped when stored
	Delay           *time.Duration // FailAttempt: instead of the backoff
	ExitCode        int            // -1: none
	Signal          string         // name without SIG
	Result          []byte         // Complete; beyond 1 MiB it is cut and marked
	ResultTruncated bool
	ByWorker        bool
	Died            bool // the process died by itself while it held the message

	expired bool // the claim ends because its time is up
	park    bool // Unreported: PARKED whatever the policy
}

// Settled is what an end did.
type Settled struct {
	State    State
	Attempts int
	Visible  []ID // staged sends that became visible
	Repeated bool // the same settle had been made before; nothing was written
}
