package server

import (
	"fmt"
	"strings"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// waiting adds to what is on record of why a message is not running what only the
// running supervisor knows, or that there is none.
func (c *Control) waiting(d mailbox.Detail) string {
	if c.supervisor == nil {
		return whyOffline(d)
	}
	if d.State != mailbox.New {
		return d.Why
	}
	why := d.OnRecord
	for _, a := range c.supervisor.Status().Actors {
		if a.Actor == d.To {
			why = whyWaiting(d, a)
		}
	}
	if c.storage != nil && c.storage.Room().Full {
		const full = "the disk is full, and nothing is claimed until there is room"
		if d.Ready {
			why = ""
		}
		why = join(why, full)
	}
	return join(why, d.Poison)
}

// whyOffline says why a message is not running where no supervisor does.
func whyOffline(d mailbox.Detail) string {
	const none = "no supervisor runs; start it with `sovereign run`"
	switch {
	case d.State == mailbox.Claimed:
		return join("no supervisor runs: the next one, or `sovereign recover`, ends its attempt", d.Poison)
	case d.State == mailbox.New && d.Ready:
		return join(none, d.Poison)
	case d.State == mailbox.New:
		return join(d.Why, none)
	}
	return d.Why
}

// join is the sentences that are not empty, as one.
func join(all ...string) string {
	var out []string
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// whyWaiting says why a NEW message is not running, given how its actor stands: a
// pure function.
func whyWaiting(d mailbox.Detail, a protocol.ActorStatus) string {
	trouble := ""
	if hasFailed(a) {
		trouble = a.Actor + " has failed; see `sovereign status " + a.Actor + "`, then run `sovereign start " + a.Actor + "`"
	}
	switch {
	case !d.Ready:
		return join(d.OnRecord, trouble)
	case trouble != "":
		return trouble
	}
	text := d.OnRecord
	if said := slotsSay(a); said != "" {
		text += ": " + said
	}
	return text
}

// hasFailed reports whether all slots of an actor have: while one has not, its
// messages are taken.
func hasFailed(a protocol.ActorStatus) bool {
	for _, s := range a.Slots {
		if s.State != protocol.SlotFailed {
			return false
		}
	}
	return len(a.Slots) > 0
}

// slotsSaid is how many slots are told of one by one.
const slotsSaid = 3

// slotsSay says what the slots of an actor do instead of taking a message.
func slotsSay(a protocol.ActorStatus) string {
	var out []string
	for i, s := range a.Slots {
		if i == slotsSaid {
			out = append(out, fmt.Sprintf("and %d more", len(a.Slots)-i))
			break
		}
		out = append(out, fmt.Sprintf("%s/%d %s", a.Actor, s.Slot, slotSays(a.Actor, s)))
	}
	return strings.Join(out, ", ")
}

func slotSays(actor string, s protocol.SlotStatus) string {
	switch {
	case len(s.Claims) == 1:
		return "works on " + s.Claims[0].ID
	case len(s.Claims) > 1:
		return fmt.Sprintf("works on %s and %d more", s.Claims[0].ID, len(s.Claims)-1)
	}
	text := ""
	switch s.State {
	case protocol.SlotUp:
		text = "is up and has not asked for it"
	case protocol.SlotIdle:
		text = "is free and about to take it"
	case protocol.SlotFailed:
		text = "has failed"
	case protocol.SlotExited:
		return "has ended, and its `restart` says to leave it so (`sovereign start " + actor + "`)"
	case protocol.SlotBackoff:
		text = "waits before its next start"
	case protocol.SlotWaiting:
		text = "is not started yet"
	case protocol.SlotStuck:
		text = "is stuck"
	default:
		text = "is " + string(s.State)
	}
	if s.Why != "" {
		text += " (" + s.Why + ")"
	}
	return text
}
