package recovery_test

import (
	"errors"
	"testing"

	"github.com/sovereign-run/sovereign/fence"
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
