package protocol

import "time"

// HelloResult tells who answers.
type HelloResult struct {
	Version  string `json:"version"`  // of the program
	Protocol int    `json:"protocol"` // Version
	PID      int    `json:"pid"`
	Running  bool   `json:"running"` // a supervisor answers, not a stopped store
}

// StatusParams: "" is every actor.
type StatusParams struct {
	Actor string `json:"actor,omitempty"`
}

// Status is what runs and what waits.
type Status struct {
	Supervisor SupervisorStatus `json:"supervisor"`
	Actors     []ActorStatus    `json:"actors"`
	Store      *StoreStatus     `json:"store,omitempty"` // where all actors were asked for
}

// StoreStatus is the room that the store takes. FreeBytes is nil where it is not
// known: the list of free pages is not read where no supervisor runs.
type StoreStatus struct {
	FileBytes int64  `json:"file_bytes"`           // of mailbox.db
	FreeBytes *int64 `json:"free_bytes,omitempty"` // of these, for what comes next
	Full      bool   `json:"full,omitempty"`       // the last update that can wait was refused: disk_full
	Refused   string `json:"refused,omitempty"`    // why a supervisor could not open it as it is, if nobody has it open
}

// SupervisorStatus is about the supervisor itself. Where none runs, State is
// SupervisorStopped and the rest is zero.
type SupervisorStatus struct {
	State     SupervisorState `json:"state"`
	PID       int             `json:"pid,omitempty"`
	Version   string          `json:"version,omitempty"`
	StartedAt time.Time       `json:"started_at,omitzero"`
	Uptime    Duration        `json:"uptime,omitzero"`
	Config    string          `json:"config,omitempty"` // path of actors.yaml
	Data      string          `json:"data,omitempty"`
}

// ActorStatus is one actor.
type ActorStatus struct {
	Actor  string       `json:"actor"`
	Mode   string       `json:"mode"`
	State  SlotState    `json:"state"` // of its worst slot, or ActorPaused and the like
	Paused bool         `json:"paused,omitempty"`
	Why    string       `json:"why,omitempty"`  // of failed and the like
	Sick   string       `json:"sick,omitempty"` // that many different messages in a row have failed
	Inbox  Counts       `json:"inbox"`
	Slots  []SlotStatus `json:"slots"`
}

// Counts are an inbox's messages by state.
type Counts struct {
	New     int64 `json:"new"`
	Claimed int64 `json:"claimed"`
	Done    int64 `json:"done"`
	Dead    int64 `json:"dead"`
	Parked  int64 `json:"parked"`
}

// SlotStatus is one slot.
type SlotStatus struct {
	Slot     int         `json:"slot"`
	State    SlotState   `json:"state"`
	PID      int         `json:"pid"`
	Process  string      `json:"process"` // shortened
	Uptime   Duration    `json:"uptime"`
	Restarts int         `json:"restarts"`
	Why      string      `json:"why,omitempty"`
	Next     string      `json:"next,omitempty"`     // what a person can run about it
	LogLost  int64       `json:"log_lost,omitempty"` // bytes of output that could not be kept
	Lease    *SlotLease  `json:"lease,omitempty"`
	Claims   []SlotClaim `json:"claims,omitempty"`

	// What its process says of itself by sd_notify.

	Says      string `json:"says,omitempty"` // its STATUS
	Reloading bool   `json:"reloading,omitempty"`
	Stopping  bool   `json:"stopping,omitempty"`
}

// SlotLease is a slot's lease.
type SlotLease struct {
	Token       Token `json:"token"`
	RemainingMS int64 `json:"remaining_ms"`
}

// SlotClaim is a message that a slot works on.
type SlotClaim struct {
	ID    string `json:"id"`
	Token Token  `json:"token"`
}

// UpgradeParams name the program that is to take the place of the supervisor's: "" is
// the file that it was started from, as it is now. A path that is not absolute counts
// from the supervisor's folder.
type UpgradeParams struct {
	Binary string `json:"binary,omitempty"`
}

// UpgradedParams name an upgrade that has begun.
type UpgradedParams struct {
	ID string `json:"id"`
}

// Upgrade says what took the place of what.
type Upgrade struct {
	From      string `json:"from"` // version
	To        string `json:"to"`
	Binary    string `json:"binary"`
	Processes int    `json:"processes"` // that went on
	TookMS    int64  `json:"took_ms"`   // in which nothing was answered
}

// InboxListParams chooses messages; zero values choose all.
type InboxListParams struct {
	Actor   string   `json:"actor,omitempty"`
	State   string   `json:"state,omitempty"` // a MessageState, in either case
	From    string   `json:"from,omitempty"`
	Subject string   `json:"subject,omitempty"` // part of it
	Older   Duration `json:"older,omitzero"`
	Limit   int      `json:"limit,omitempty"`  // 0: 50
	After   string   `json:"after,omitempty"`  // Inbox.Next of the page before
	Newest  bool     `json:"newest,omitempty"` // newest first; After goes on that way
}

// Inbox is one page of messages. Where few of many messages match, it may hold fewer
// than its limit, or none, and Next says where to go on.
type Inbox struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next"`             // "" on the last page
	Looked   int       `json:"looked,omitempty"` // at so many messages for this page
}

// InboxFollowParams asks to which messages something has happened: which have arrived
// since the place Arrivals, and of which the journal tells since Events. Both are those
// of the answer before; with both 0 the answer is where to begin, at once. With Wait, and
// nothing there yet, the answer comes at the next change or after that long.
type InboxFollowParams struct {
	Actor    string   `json:"actor,omitempty"` // arrivals to this one alone
	Arrivals uint64   `json:"arrivals,omitempty"`
	Box      string   `json:"box,omitempty"` // of the answer that Arrivals is from
	Events   uint64   `json:"events,omitempty"`
	Wait     Duration `json:"wait,omitzero"`
}

// InboxFollowed names messages to which something has happened, each once. Arrivals and
// Events are those of the next request. Missed says that arrivals were forgotten before
// they were asked for, because too many came or the supervisor was another one:
// inbox.list has them.
type InboxFollowed struct {
	IDs      []string `json:"ids"`
	Arrivals uint64   `json:"arrivals"`
	Box      string   `json:"box"` // whose place Arrivals is: another one after a restart
	Events   uint64   `json:"events"`
	Missed   bool     `json:"missed,omitempty"`
}

// InboxShowParams names a message; the result is a MessageDetail.
type InboxShowParams struct {
	ID string `json:"id"`
}

// InboxIDsParams names the messages of retry, cancel and drop. With State, only those
// that are in it are changed, and with Older those that have not ended since; the others
// are left as they are, which is no error.
type InboxIDsParams struct {
	IDs   []string `json:"ids"`
	State string   `json:"state,omitempty"` // a MessageState, in either case
	Older Duration `json:"older,omitzero"`
}

// InboxChanged has one entry for each id, in their order.
type InboxChanged struct {
	Results []InboxChange `json:"results"`
}

// An InboxChange is what became of one message. State is where it stands: of
// a cancelled message that still runs, CLAIMED; "" where it is gone, refused or left. Left
// says that it does not stand as was asked for, or is gone, and was left as it is.
type InboxChange struct {
	ID    string       `json:"id"`
	State MessageState `json:"state,omitempty"`
	Left  bool         `json:"left,omitempty"`
	Error *Error       `json:"error,omitempty"`
}

// InboxPurgeParams removes ended messages. State is required.
type InboxPurgeParams struct {
	State string   `json:"state"` // a MessageState, in either case
	Older Duration `json:"older,omitzero"`
}

// InboxPurged tells how many.
type InboxPurged struct {
	Removed int `json:"removed"`
}

// AwaitParams waits for a message's end, at most Timeout; 0 is for ever. The
// result is a MessageDetail; its State tells whether the message has ended.
type AwaitParams struct {
	ID      string   `json:"id"`
	Timeout Duration `json:"timeout,omitzero"`
}

// ActorParams names the actor of a lifecycle method. Signal, a name with or
// without SIG or a number, is for actor.signal alone.
type ActorParams struct {
	Actor  string `json:"actor"`
	Signal string `json:"signal,omitempty"`
}

// ReloadParams has the supervisor read its actors.yaml again. With DryRun it only says
// what it would do.
type ReloadParams struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// Reload is what a reload does, or would do. Actors that stay as they are do not appear
// in Changes.
type Reload struct {
	Config    string         `json:"config"`  // path of actors.yaml
	Applied   bool           `json:"applied"` // false for a dry run
	Changes   []ReloadChange `json:"changes"`
	Unchanged int            `json:"unchanged"`
}

// A ReloadChange is what a reload does about one actor: Action is add, remove, restart,
// scale or update.
type ReloadChange struct {
	Actor    string   `json:"actor"`
	Action   string   `json:"action"`
	Keys     []string `json:"keys,omitempty"` // of actors.yaml that differ
	Replicas Replicas `json:"replicas"`
	Note     string   `json:"note,omitempty"` // for people
}

// Replicas are how many slots an actor has before and after.
type Replicas struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// EventsListParams reads the journal after a place in it. With Wait, and
// nothing there yet, the answer comes at the next event or after that long.
type EventsListParams struct {
	After uint64   `json:"after,omitempty"`
	Limit int      `json:"limit,omitempty"` // 0: 100
	Wait  Duration `json:"wait,omitzero"`
	Actor string   `json:"actor,omitempty"`
}

// Events is a part of the journal. Next is the After of the following call.
type Events struct {
	Events []Event `json:"events"`
	Next   uint64  `json:"next"`
}

// An Event is one entry of the journal; what does not apply is left out.
type Event struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Kind     EventKind `json:"kind"`
	Actor    string    `json:"actor,omitempty"`
	Slot     int       `json:"slot,omitempty"`
	Process  string    `json:"process,omitempty"` // shortened
	Message  string    `json:"message,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	Token    Token     `json:"token,omitempty"`
	Category string    `json:"category,omitempty"`
	Text     string    `json:"text,omitempty"`
}

// Leases is every lease on record.
type Leases struct {
	Leases []Lease `json:"leases"`
}

// A Lease is one lease, or why its record cannot be read.
type Lease struct {
	Actor       string `json:"actor"`
	Slot        int    `json:"slot"`
	Process     string `json:"process,omitempty"` // shortened
	Token       Token  `json:"token,omitempty"`
	RemainingMS int64  `json:"remaining_ms"`
	Expired     bool   `json:"expired"`
	Error       *Error `json:"error,omitempty"`
}

// LeasesResetParams: slot 0 is every slot of the actor.
type LeasesResetParams struct {
	Actor string `json:"actor"`
	Slot  int    `json:"slot,omitempty"`
}

// LeasesReset tells how many records were removed.
type LeasesReset struct {
	Reset int `json:"reset"`
}

// Verified is what the integrity check found.
type Verified struct {
	Messages int64     `json:"messages"`
	Problems []Problem `json:"problems"`
	More     int64     `json:"more,omitempty"` // problems beyond those listed
}

// A Problem is one finding.
type Problem struct {
	What  string `json:"what"`
	Where string `json:"where"`
}

// Metrics are all metrics, as text in the format of Prometheus.
type Metrics struct {
	Text string `json:"text"`
}
