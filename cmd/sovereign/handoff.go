package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// handoffFormat is the version of handoff. A program takes over from one with the same.
const handoffFormat = 3

// A handoff is a supervisor that stands still, for the program that takes its place in
// the same process: it is executed, and inherits the descriptors under their numbers. It
// lies in a file in memory, that no other process sees: it holds identities and tokens.
type handoff struct {
	Format  int      `json:"format"`
	Version string   `json:"version"` // of the program that hands off
	Schema  uint32   `json:"schema"`  // of its stores
	Args    []string `json:"args"`    // of the command line, without the program
	Config  string   `json:"config"`  // path of actors.yaml
	Data    string   `json:"data"`    // folder of the store

	// What is needed only where it is not a question whether it could be taken over.

	ID      string        `json:"id"` // of the upgrade
	Began   time.Time     `json:"began"`
	Program string        `json:"program"` // path of the program that hands off
	Next    string        `json:"next"`    // path of the one that takes over
	Old     uintptr       `json:"old"`     // the program that hands off, open
	Lock    uintptr       `json:"lock"`    // of the store
	Now     fence.Instant `json:"now"`     // at which everything stands still
	Since   uint64        `json:"since"`   // the last event before the run
	Ready   bool          `json:"ready"`   // the service manager was told that all is up
	Full    bool          `json:"full"`    // it was told that the disk is full, and not yet that it has room
	Signals uintptr       `json:"signals"` // of those that came meanwhile, see interruptions.hand; 0 = none
	Failure *errorJSON    `json:"failure"` // why the next program gave it back; nil = it did not

	Sockets    []server.HandedListener `json:"sockets"`
	Metrics    *uintptr                `json:"metrics"`
	Answers    server.Handed           `json:"answers"`
	Arrivals   *mailbox.HandedArrivals `json:"arrivals,omitempty"` // nil: nobody followed them, or the program was of a version that hands none over
	Supervisor *supervisor.Handed      `json:"supervisor"`
	Host       process.Handed          `json:"host"`
}

// fds are all descriptors that are passed on.
func (h *handoff) fds() []uintptr {
	out := append([]uintptr{h.Old, h.Lock}, h.Answers.FDs()...)
	for _, s := range h.Sockets {
		out = append(out, s.FDs()...)
	}
	if h.Metrics != nil {
		out = append(out, *h.Metrics)
	}
	if h.Signals != 0 {
		out = append(out, h.Signals)
	}
	return append(out, h.Supervisor.FDs()...)
}

// check returns why this program cannot take over from the one that made h.
func (h *handoff) check() error {
	if h.Format != handoffFormat {
		return refusal.New(refusal.WrongState, "take over from version "+h.Version,
			fmt.Sprintf("it hands off in format %d, and this version (%s) takes over format %d", h.Format, thisBuild().Version, handoffFormat),
			"restart the supervisor with the other program instead")
	}
	if err := bolt.CheckSchema(h.Schema); err != nil {
		return err
	}
	if h.Supervisor != nil {
		return h.Supervisor.Check()
	}
	return nil
}

// write puts h into f in the place of what is there.
func (h *handoff) write(f *os.File) error {
	text, err := json.Marshal(h)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("write down what is passed on: %w", err)
	}
	return nil
}

func readHandoff(r io.Reader) (*handoff, error) {
	var h handoff
	if err := json.NewDecoder(r).Decode(&h); err != nil {
		return nil, fmt.Errorf("read what was passed on: %w", err)
	}
	return &h, nil
}

// environ is the environment of a program that takes over from the descriptor fd.
func (n *notifier) environ(fd uintptr) []string {
	env := append(os.Environ(), interrupt.Handoff+"="+strconv.Itoa(int(fd)))
	if n.socket != "" {
		env = append(env, "NOTIFY_SOCKET="+n.socket)
	}
	if n.watchdog > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(n.watchdog.Microseconds(), 10), "WATCHDOG_PID="+strconv.Itoa(os.Getpid()))
	}
	return env
}
