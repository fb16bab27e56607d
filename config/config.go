package config

import "time"

// A File is one actors.yaml, checked, with every default filled in and every
// path absolute.
type File struct {
	Path   string  // of the file itself, absolute
	Data   string  // folder of the store, absolute
	Actors []Actor // in the order of the file
}

// A Mode says how an actor's processes and its messages meet.
type Mode string

const (
	Task   Mode = "task"   // one child per message
	Worker Mode = "worker" // a long-lived child that claims messages
	Daemon Mode = "daemon" // supervised only, no mailbox
)

// An Actor is one entry under actors:. What makes no sense in its mode is zero,
// save Claim, which is filled for a task as well.
type Actor struct {
	Name      string
	Command   []string // argv; a string command is ["/bin/sh", "-c", string]
	Mode      Mode
	Replicas  int
	Cwd       string            // absolute
	Env       map[string]string // env over env_file
	EnvFile   string            // absolute, "" = none; its variables are in Env
	User      string            // "" = the supervisor's own
	Group     string            // "" = the user's primary group
	Umask     int               // -1 = the supervisor's own
	Limits    Limits
	Restart   Restart // "" in a task
	Backoff   Backoff
	Intensity Intensity
	Stop      Stop
	Ready     *Ready        // nil = ready once started
	Watchdog  time.Duration // 0 = off
	After     []string
	LeaseTTL  time.Duration
	Timeout   time.Duration // the longest that one message may take
	// ProgressTimeout is the longest that a claim's progress may stay the same; 0 = off.
	ProgressTimeout time.Duration
	Claim           Claim
	Retry           Retry
	OnWorkerLost    OnWorkerLost
	Inbox           Inbox
	Retention       Retention
	Reclaim         Reclaim // workspace.reclaim
	ResultMax       int64   // result.max_size, bytes; 0 = without bound
	Log             Log
}

// Limits are resource limits of each process; zero means not limited.
type Limits struct {
	NoFile uint64
	Memory int64 // bytes, cgroup v2
	Pids   int64 // cgroup v2
}

// Restart says when a long-lived process that ended by itself is started again.
type Restart string

const (
	Always    Restart = "always"
	OnFailure Restart = "on-failure"
	Never     Restart = "never"
)

// A Backoff grows the wait between restarts: initial × factor^n, at most max,
// varied by ± jitter (a share from 0 to 1).
type Backoff struct {
	Initial, Max   time.Duration
	Factor, Jitter float64
}

// Intensity: more than Restarts ends within Within make the slot failed.
type Intensity struct {
	Restarts int
	Within   time.Duration
}

// Stop says how a process is asked to end, and how long it may take.
type Stop struct {
	Signal  string // without SIG: TERM, INT, …
	Timeout time.Duration
}

// Ready is how a process shows that it is ready: exactly one of Notify, Exec,
// TCP and HTTP is set.
type Ready struct {
	Notify  bool
	Exec    []string
	TCP     string
	HTTP    string
	Timeout time.Duration
}

// Renew says who keeps a worker's claims alive.
type Renew string

const (
	Auto   Renew = "auto"   // the supervisor, while the process lives and is within the actor's timeout
	Manual Renew = "manual" // the worker
)

// Claim is the lease on a message.
type Claim struct {
	TTL   time.Duration
	Renew Renew
}

// Retry is what happens to a message whose attempt failed.
type Retry struct {
	MaxAttempts int
	Backoff
}

// OnWorkerLost is what happens to a message whose attempt ended without a word
// from its worker (P4.7).
type OnWorkerLost string

const (
	RetryMessage OnWorkerLost = "retry" // at least once
	ParkMessage  OnWorkerLost = "park"  // at most once
)

// Inbox bounds what waits for an actor.
type Inbox struct {
	Limit   int64 // messages NEW, CLAIMED or reserved
	MaxBody int64 // bytes
}

// Retention is how long ended messages and events are kept, and how many at most.
type Retention struct {
	Done, Dead, Events                time.Duration
	DoneCount, DeadCount, EventsCount int64
}

// Reclaim says when an attempt's workspace is removed.
type Reclaim string

const (
	ReclaimAlways    Reclaim = "always"
	ReclaimOnSuccess Reclaim = "on_success"
	ReclaimNever     Reclaim = "never"
)

// Log is where and how much of a slot's output is kept.
type Log struct {
	File    bool
	MaxSize int64 // bytes of one file
	Keep    int   // rotated files besides the current one
}
