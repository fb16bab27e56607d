package mailbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sovereign-run/sovereign/refusal"
)

// An Actor is what the mailbox knows of an address: recorded in the store, so
// that sends are checked without a supervisor too. It is stored as JSON, under
// the names of the tags, in which durations are nanoseconds.
type Actor struct {
	Name      string        `json:"Name"`
	Mailbox   bool          `json:"Mailbox"` // false: a daemon, nobody can send to it
	ClaimTTL  time.Duration `json:"ClaimTTL"`
	Timeout   time.Duration `json:"Timeout"`  // the longest one message may take; 0 = no limit
	Progress  time.Duration `json:"Progress"` // the longest that a claim's progress may stay the same; 0 = no limit
	Auto      bool          `json:"Auto"`     // claims are kept while their process lives and is within Timeout
	Retry     Retry         `json:"Retry"`
	Park      bool          `json:"Park"` // on_worker_lost: park
	Retention Retention     `json:"Retention"`
	Limit     int64         `json:"Limit"`   // messages NEW, CLAIMED or reserved; 0 = no limit
	MaxBody   int64         `json:"MaxBody"` // bytes; 0 = the store's bound
	Reclaim   string        `json:"Reclaim"` // workspace.reclaim: always, on_success or never; "" = always
	Removed   bool          `json:"Removed"` // not in the last actors.yaml
	Stopped   bool          `json:"Stopped"` // by an operator, durable
	Paused    bool          `json:"Paused"`  // by an operator, durable: no deliveries
}

// actorVersion rises when an earlier program could misunderstand a record of
// an actor. Records from before there was one have none, and read as 1.
const actorVersion = 1

// storedActor is an Actor as it lies in the store.
type storedActor struct {
	Version int `json:"Version"`
	Actor
}

func (a Actor) encode() ([]byte, error) { return json.Marshal(storedActor{actorVersion, a}) }

// decodeActor reads the record that lies under name: store_corrupt where it is
// none, or one of another actor, or of a version that this program does not know.
func decodeActor(name string, v []byte) (Actor, error) {
	stored := storedActor{Version: 1}
	err := json.Unmarshal(v, &stored)
	switch {
	case err != nil:
	case stored.Name != name:
		err = fmt.Errorf("it names %s", quote(stored.Name))
	case stored.Version < 1 || stored.Version > actorVersion:
		err = fmt.Errorf("it has version %d, and this program knows 1 to %d", stored.Version, actorVersion)
	default:
		return stored.Actor, nil
	}
	return Actor{}, refusal.New(refusal.StoreCorrupt, "the record of actor "+quote(name)+" cannot be read", err.Error(),
		"run its actors.yaml once: that writes it anew")
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
	Done        time.Duration `json:"Done"`
	Dead        time.Duration `json:"Dead"`
	Events      time.Duration `json:"Events"`
	DoneCount   int64         `json:"DoneCount"`
	DeadCount   int64         `json:"DeadCount"`
	EventsCount int64         `json:"EventsCount"`
}

// Retry says when a failed message is tried again, and how often.
type Retry struct {
	MaxAttempts int           `json:"MaxAttempts"`
	Initial     time.Duration `json:"Initial"`
	Max         time.Duration `json:"Max"`
	Factor      float64       `json:"Factor"`
	Jitter      float64       `json:"Jitter"`
}

// Counts are an inbox's messages by state. Reserved are staged sends whose place
// is taken.
type Counts struct {
	New, Claimed, Done, Dead, Parked, Reserved int64
}
