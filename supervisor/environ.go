package supervisor

import (
	"strconv"
	"strings"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// channelFD is the number under which a worker finds its channel.
const channelFD = 3

// reserved reports whether a variable of the supervisor's own environment must
// not reach a child: a child would speak for the supervisor, or for another
// child.
func reserved(name string) bool {
	return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "SOVEREIGN_") ||
		strings.HasPrefix(name, "WATCHDOG_") || strings.HasPrefix(name, "LISTEN_")
}

// inherited is env without what is reserved.
func inherited(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !reserved(name) {
			out = append(out, kv)
		}
	}
	return out
}

// overlay is base with the variables of over in it, each name once, in the order
// of base and then of over.
func overlay(base []string, over ...string) []string {
	place := make(map[string]int, len(base)+len(over))
	out := make([]string, 0, len(base)+len(over))
	for _, kv := range append(base[:len(base):len(base)], over...) {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := place[name]; ok {
			out[i] = kv
			continue
		}
		place[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// declared is an actor's env as variables. Names of ours are left out: they
// would be taken for what the supervisor says.
func declared(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		if !strings.HasPrefix(name, "SOVEREIGN_") {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// identity is what a child is told of itself (docs/interface.md). wall is the
// time of the spawn.
func (c *child) identity(socket string, ttl time.Duration, wall time.Time) []string {
	return []string{
		"SOVEREIGN_ACTOR=" + c.holder.Slot.Actor,
		"SOVEREIGN_SLOT=" + strconv.Itoa(c.holder.Slot.Number),
		process.MarkVariable + "=" + string(c.holder.Process),
		"SOVEREIGN_LEASE_TOKEN=" + c.holder.Token.String(),
		"SOVEREIGN_LEASE_EXPIRES=" + wall.Add(ttl).UTC().Format(time.RFC3339),
		process.SocketVariable + "=" + socket,
	}
}

// message is what a task is told of its message.
func message(d mailbox.Delivery, workspace string) []string {
	return []string{
		"SOVEREIGN_MESSAGE_ID=" + d.ID.String(),
		"SOVEREIGN_CLAIM_TOKEN=" + d.Token.String(),
		"SOVEREIGN_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"SOVEREIGN_FROM=" + printable(d.From),
		"SOVEREIGN_SUBJECT=" + printable(d.Subject),
		"SOVEREIGN_WORKSPACE=" + workspace,
	}
}

// printable is s without zero bytes, which no environment can hold: a message's
// content never keeps its task from starting.
func printable(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
