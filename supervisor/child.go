package supervisor

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor/capture"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// An Attacher serves the channels of long-lived workers. The server implements
// it.
type Attacher interface {
	// Attach serves conn, the supervisor's end of a worker's descriptor 3, for
	// the process h, and returns at once.
	Attach(conn net.Conn, h fence.Holder) Channel
	// Adopt is Attach for a channel that the program before this one has passed on,
	// as Channel.Handed describes it.
	Adopt(fd uintptr, state json.RawMessage, h fence.Holder) (Channel, error)
}

// A Channel is a served connection to one worker.
type Channel interface {
	// Notify sends a notification. It never blocks; one that the worker does not
	// take is dropped.
	Notify(method string, params any)
	// Close is called once the worker's tree has ended: it answers what the
	// worker had written before, for a short time, and closes the connection.
	Close()
	// Handed is the channel's descriptor, and what another program needs to go on with
	// it; ok is false where it has ended. It is called while nothing comes through it.
	Handed() (fd uintptr, state json.RawMessage, ok bool)
}

// A child is one incarnation: a process with its lease, and in task mode with its
// claim.
type child struct {
	slot   *slot
	def    *definition // that it is started by
	holder fence.Holder
	task   *mailbox.Delivery // nil in a long-lived process; its body is dropped once the process has it
	proc   *process.Process
	output output
	space  string // folder of the workspace, "" = none

	startedAt fence.Instant
	startedOn time.Time // wall clock

	// Why it ends: owned by the slot until it is decided, never changed afterwards.

	cause   cause // 0 = it does not, as far as is known
	limit   string
	about   mailbox.Ref // the message that it is killed for, zero = none
	decided bool        // its end is under way

	tooLarge bool // that its result is too large is noted; owned by the slot

	early bool // it was ready before the slot knew that it runs; owned by the slot

	claims    context.Context // ends when it is to claim no more
	endClaims context.CancelFunc

	channel  channel
	uid      int                  // its user's number
	socket   *notifySocket        // for sd_notify; nil where there is none. Not changed once it runs
	said     atomic.Pointer[word] // what it has said of itself there, nil = nothing
	unleased atomic.Bool          // it was told that its lease is lost
	aliveAt  atomic.Int64         // instant of the last sign of life
	pending  atomic.Int32         // requests that wait for an answer; while there are, it is alive
}

// newChild is a process that is to be made by d.
func newChild(s *slot, d *definition, h fence.Holder) *child {
	c := &child{slot: s, def: d, holder: h}
	c.claims, c.endClaims = context.WithCancel(context.Background())
	return c
}

// drained reports whether the child was told to take no new work; nil was not.
func (c *child) drained() bool { return c != nil && c.claims.Err() != nil }

// output is where a process's stdout and stderr go.
type output struct {
	tail   capture.Tail
	result *capture.Result // of a task
}

// because sets why the child ends, and reports whether it is the reason now. The
// first that is observed decides; only while a stop is under way can force
// and an operator's cancel take its place.
func (c *child) because(why cause, limit string, about mailbox.Ref) bool {
	asked := c.cause == byStop && (why == byForce || why == byCancel)
	if c.decided || c.cause != 0 && !asked {
		return false
	}
	c.cause, c.limit, c.about = why, limit, about
	return true
}

// ref is the claim of a task.
func (c *child) ref() mailbox.Ref { return mailbox.Ref{ID: c.task.ID, Token: c.task.Token} }

// notify tells the worker something, where it has a channel.
func (c *child) notify(method string, params any) { c.channel.notify(method, params) }

// tellLost tells the worker that a claim of its is no longer current.
func (c *child) tellLost(ref mailbox.Ref, reason string) {
	c.notify(protocol.NotifyClaimLost, protocol.ClaimLost{ID: ref.ID.String(), Token: protocol.Token(ref.Token), Reason: reason})
}

// tellLeaseLost tells the worker, once, that its lease is no longer current, and
// reports whether it is news.
func (c *child) tellLeaseLost(reason string) bool {
	if c.unleased.Swap(true) {
		return false
	}
	c.notify(protocol.NotifyLeaseLost, protocol.LeaseLost{Reason: reason})
	return true
}

// death is all that is known of how it ended. Call it once the process has
// exited and its output is drained.
func (c *child) death() death {
	e := death{cause: c.cause, code: -1, limit: c.limit, last: c.output.tail.String()}
	if c.proc == nil {
		return e
	}
	x := c.proc.Exit()
	e.code = x.Code
	if x.Signal != 0 {
		e.code, e.signal = -1, signalName(x.Signal)
	}
	if x.Starved && c.cause == byItself && !x.Success() {
		e.memory = "not set"
		if most := c.def.spec.Limits.Memory; most > 0 {
			e.memory = config.FormatSize(most)
		}
	}
	return e
}

// signalName is a signal's name without SIG, or its number.
func signalName(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strings.TrimPrefix(s.String(), "signal ")
}

// signalNumber is the signal of a name with or without SIG, or of a number. 0 is
// none.
func signalNumber(name string) unix.Signal {
	const last = 64 // SIGRTMAX
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 || n > last {
			return 0
		}
		return unix.Signal(n)
	}
	return unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
}
