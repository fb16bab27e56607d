package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// The actors that a judged supervisor runs. All are of mode worker and
// renew: manual, with the workers of this package.
const (
	Work  = "work"  // two slots, claims of an hour, three attempts without backoff
	Brief = "brief" // two slots, claims of BriefTTL, three attempts without backoff
	Other = "other" // one slot, claims of an hour: the one whom a message is not for
)

// The policies that the rules count on.
const (
	BriefTTL = 500 * time.Millisecond
	LongTTL  = time.Hour
	Attempts = 3
)

// Slots are the slots of each actor.
var Slots = map[string]int{Work: 2, Brief: 2, Other: 1}

// A System is one running supervisor.
type System struct {
	// Dial connects to worker.sock.
	Dial func(ctx context.Context) (net.Conn, error)
	// Operator connects to control.sock.
	Operator func(ctx context.Context) (net.Conn, error)
	// Workers brings each incarnation of a worker once it is there: at first one
	// for each slot, later the successors of those that were killed.
	Workers <-chan *Worker
	// Kill ends a worker's process with SIGKILL.
	Kill func(pid int) error
}

// A Worker is one process that hosts a slot and relays its channel.
type Worker struct {
	Actor   string            `json:"actor"`
	Slot    string            `json:"slot"`
	PID     int               `json:"pid"`
	As      protocol.Identity `json:"identity"`
	channel *wire
}

// Accept reads who has come over conn, which a Relay holds at the other end, and
// owns conn from then on.
func Accept(conn net.Conn) (*Worker, error) {
	w := &Worker{}
	lines := protocol.NewDecoder(conn)
	line, err := lines.Line()
	if err == nil {
		err = json.Unmarshal(line, w)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("hear who has come: %w", err)
	}
	w.channel = newWire(conn, lines)
	return w, nil
}

// Relay is the whole work of a worker process: it says over gate who it is, and
// then passes on what comes, in both directions, until either end closes.
// getenv is its environment; channel, what it inherited from its supervisor.
func Relay(getenv func(string) string, pid int, gate, channel net.Conn) error {
	var token protocol.Token
	if err := json.Unmarshal([]byte(`"`+getenv("SOVEREIGN_LEASE_TOKEN")+`"`), &token); err != nil {
		return refusal.New(refusal.Unavailable, "this program has no supervisor", "SOVEREIGN_LEASE_TOKEN is no token",
			"it is a part of `sovereign conformance`").Because(err)
	}
	w := Worker{Actor: getenv("SOVEREIGN_ACTOR"), Slot: getenv("SOVEREIGN_SLOT"), PID: pid,
		As: protocol.Identity{Process: getenv("SOVEREIGN_PROCESS"), LeaseToken: token}}
	if err := protocol.NewEncoder(gate).Encode(w); err != nil {
		return fmt.Errorf("say who has come: %w", err)
	}
	ended := make(chan error, 2)
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		ended <- err
	}
	go pass(gate, channel) // both end when the process does, right after the first
	go pass(channel, gate)
	return <-ended
}
