package recovery_test

import (
	"errors"
	"testing"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/recovery"
)

// P1.9: a lease that cannot be read is reported and left as it is. Treat it as an
// ordinary one in Decide and this fails.
func TestDecide_LeavesDamageClosed(t *testing.T) {
	broken := fence.Record{Slot: fence.Slot{Actor: "a", Number: 1}, Err: errors.New("unreadable")}
	p := decided([]fence.Record{broken}, nil)
	if len(p.Damage) != 1 || len(p.Leave) != 0 || len(p.Report) != 0 {
		t.Fatalf("%+v", p)
	}
}

// P4.5: who has not ended keeps lease and claims, whatever the clock says; who has
// loses them. Leave out found.Alive in Decide and this fails.
func TestDecide_LeavesTheLivingAlone(t *testing.T) {
	one, two := fence.Slot{Actor: "a", Number: 1}, fence.Slot{Actor: "a", Number: 2}
	hangs, dead := fence.NewProcess(), fence.NewProcess()
	var found recovery.Found
	for _, h := range []fence.Holder{{Slot: one, Process: hangs, Token: 1}, {Slot: two, Process: dead, Token: 2}} {
		found.Leases = append(found.Leases, fence.Record{Slot: h.Slot, Lease: fence.Lease{Slot: h.Slot, Process: h.Process, Token: h.Token, ExpiresAt: 50}})
		for _, auto := range []bool{true, false} {
			found.Claims = append(found.Claims, mailbox.OpenClaim{Ref: mailbox.Ref{ID: mailbox.ID(len(found.Claims) + 1), Token: 3}, Holder: h, ExpiresAt: 50, Auto: auto})
		}
	}
	found.Alive = map[fence.Process]bool{hangs: true}
	p := recovery.Decide(found, 100)
	if len(p.Leave) != 1 || p.Leave[0].Process != dead || len(p.Keep) != 1 || p.Keep[0].Process != hangs || len(p.Sweep) != 1 || p.Sweep[0].ID != 4 {
		t.Fatalf("%+v", p)
	}
	found.Alive, found.Leases = nil, nil
	if p := recovery.Decide(found, 100); len(p.Leave) != 2 || len(p.Keep) != 0 || len(p.Sweep) != 2 {
		t.Fatalf("once it has ended: %+v", p)
	}
}

// P4.6: a workspace is not reclaimed before its attempt's end is durable, whatever
// the policy. Remove the case of an open attempt in Reclaimable and this fails.
func TestReclaimable_NeverBeforeTheEndIsDurable(t *testing.T) {
	for _, policy := range []string{"", "always", "on_success", "never"} {
		found := []recovery.FoundWorkspace{{Open: true, Completed: true, Reclaim: policy}}
		if got := recovery.Reclaimable(found); len(got) != 0 {
			t.Errorf("policy %q: %v", policy, got)
		}
	}
}

// A result that lies in a file stays as long as its message, and no longer; what an
// attempt wrote that did not complete is no result (P4.2).
func TestReclaimable_ResultsGoWithTheirMessage(t *testing.T) {
	file := recovery.Workspace{Path: "m1.1", Message: 1, Attempt: 1, Result: true}
	for _, c := range []struct {
		name  string
		found recovery.FoundWorkspace
		goes  bool
	}{
		{"completed", recovery.FoundWorkspace{Workspace: file, Completed: true, Reclaim: "always"}, false},
		{"dropped", recovery.FoundWorkspace{Workspace: file, Gone: true}, true},
		{"did not complete", recovery.FoundWorkspace{Workspace: file}, true},
		{"under way", recovery.FoundWorkspace{Workspace: file, Open: true}, false},
	} {
		if got := recovery.Reclaimable([]recovery.FoundWorkspace{c.found}); len(got) == 1 != c.goes {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
