package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// The test binary is the fleet, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == lifeArgument {
		if err := live(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// P0 to P8, held together: real processes, real signals, everything that was
// answered on record. Longer: go run ./scripts/soak -for 10m.
func TestSoak_IsClean(t *testing.T) {
	period := 10 * time.Second
	if testing.Short() {
		period = 5 * time.Second
	}
	seed := uint64(time.Now().UnixNano()) % (1 << 32) // another one each time: it is printed
	var out bytes.Buffer
	clean, err := soak(t.Context(), &out, "", seed, period, false)
	t.Logf("%s", out.String())
	if err != nil {
		t.Fatal(err)
	}
	if !clean {
		t.Error("something was violated: see above")
	}
}
