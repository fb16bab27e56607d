package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The test binary is the fleet, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == lifeArgument {
		fmt.Fprintln(os.Stderr, live(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A1, A2, A7, E5, P4.9: thirty supervisors are killed with SIGKILL, half of them while
// they start. Nothing of one lives when the next is ready, and no two lives of a slot
// overlap. Start before the leftovers are ended and this fails. Longer: go run
// ./scripts/kills -n 200.
func TestKills_NothingIsLeftAndNothingOverlaps(t *testing.T) {
	// On a machine that is too busy for thirty, as many as there is time for.
	f, err := kills(t.Context(), "", uint64(time.Now().UnixNano())%(1<<32), 30, 25*time.Second)
	t.Log(f)
	if err != nil {
		t.Fatal(err)
	}
	if !f.tell() {
		t.Error("that proves little")
	}
}
