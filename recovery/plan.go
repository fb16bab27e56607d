package recovery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
)

// Found is what a pass finds on record, with the store's lock held: whoever
// held these leases and claims is not looked after by a supervisor any more.
type Found struct {
	Leases []fence.Record
	Claims []mailbox.OpenClaim
	Alive  map[fence.Process]bool // of whom something could not be ended
}

// A Plan is what a pass does, in the order of P5.
type Plan struct {
	Report []fence.Record // expired leases, only reported
	Sweep  []mailbox.Ref  // claims that expired before the pass
	Leave  []fence.Holder // processes whose lease is released and whose attempts end
	Keep   []fence.Holder // processes that are not gone: what they hold stays theirs until they are (P4.5)
	Damage []fence.Record // leases that cannot be read, left for `sovereign lease reset`
}

// Decide makes the plan of a pass at now on the lease clock. It depends on
// nothing else: the same findings give the same plan.
func Decide(found Found, now fence.Instant) Plan {
	var p Plan
	seen := map[fence.Process]bool{}
	leave := func(h fence.Holder) {
		switch {
		case seen[h.Process]:
		case found.Alive[h.Process]:
			p.Keep = append(p.Keep, h)
		default:
			p.Leave = append(p.Leave, h)
		}
		seen[h.Process] = true
	}
	for _, l := range found.Leases {
		switch {
		case l.Err != nil:
			// Fails closed: nobody is granted the slot before a person has
			// looked. What its holder claimed is recovered below.
			p.Damage = append(p.Damage, l)
		case now >= l.Lease.ExpiresAt:
			p.Report = append(p.Report, l)
			leave(l.Lease.Holder())
		default:
			// Unexpired, but its keeper is dead: the lock that we hold says so.
			leave(l.Lease.Holder())
		}
	}
	for _, c := range found.Claims {
		if !c.Auto && now >= c.ExpiresAt && !found.Alive[c.Holder.Process] {
			// Its time was up before we came: an expired claim, not a lost worker.
			// An auto claim's time was not: it ran as long as its worker did.
			p.Sweep = append(p.Sweep, c.Ref)
		}
		// Its lease may be gone (a crash between two steps of an earlier
		// recovery) or unreadable: the claim's own record names its holder.
		leave(c.Holder)
	}
	slices.SortFunc(p.Leave, bySlot)
	slices.SortFunc(p.Keep, bySlot)
	return p
}

func bySlot(a, b fence.Holder) int {
	return cmp.Or(strings.Compare(a.Slot.Actor, b.Slot.Actor), cmp.Compare(a.Slot.Number, b.Slot.Number),
		strings.Compare(string(a.Process), string(b.Process)))
}

// A FoundWorkspace is a workspace folder and what is known of its attempt.
type FoundWorkspace struct {
	Workspace
	Open      bool   // its attempt is still on record
	Completed bool   // its attempt completed
	Gone      bool   // its message has been dropped
	Reclaim   string // its actor's policy
}

// Reclaimable returns the workspaces that may be removed: those of attempts
// that have ended durably, by their actor's policy (P4.6).
func Reclaimable(found []FoundWorkspace) []Workspace {
	var out []Workspace
	for _, w := range found {
		switch {
		case w.Open:
			// Never before its end is durable.
		case w.Result && !w.Gone && w.Completed:
			// It is the message's result, and goes with it.
		case w.Result:
			out = append(out, w.Workspace)
		case w.Gone, Reclaims(w.Reclaim, w.Completed):
			out = append(out, w.Workspace)
		}
	}
	return out
}

// Reclaims reports whether an actor's policy (config's workspace.reclaim, "" is
// always) has the workspace of an attempt go that has ended.
func Reclaims(policy string, completed bool) bool {
	switch policy {
	case "always", "":
		return true
	case "on_success":
		return completed
	}
	return false
}
