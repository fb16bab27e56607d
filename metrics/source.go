package metrics

import (
	"context"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/supervisor"
)

// A Source is where the numbers are read. Status and Store are required; what is nil
// is left out.
type Source struct {
	Version   string
	Status    func(context.Context) (protocol.Status, error)      // with the inboxes
	Oldest    func(context.Context) (map[string]time.Time, error) // mailbox.Box.Oldest
	Messages  func() map[string]mailbox.Tally
	Processes func() map[string]supervisor.Tally
	Answered  func() map[server.Answered]uint64
	Store     func() Store
}

// Store is the state of the store's file, and what was committed since it was opened.
type Store struct {
	FileBytes int64 // of mailbox.db
	FreeBytes int64 // of these, free for what comes next
	Full      bool  // the last update that can wait was refused: its disk is full
	Commits   uint64
	Updates   uint64 // transactions; divided by Commits, how many share one
	Bytes     uint64 // keys and values that they wrote
	LogBytes  uint64 // written to the log in front of mailbox.db
	Moves     uint64 // checkpoints: moves of that log into mailbox.db

	CommitTimes Distribution // seconds
	CommitSizes Distribution // updates
}

// A Distribution is how many values were at most each of its bounds.
type Distribution struct {
	Bounds []float64 // ascending
	Counts []uint64  // between two bounds; one more for what is above all
	Sum    float64
}
