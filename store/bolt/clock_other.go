//go:build !linux

package bolt

import "time"

var processStart = time.Now()

// machineClock returns the time since this process started, and counts each
// process as a boot of its own: the lease clock goes on from the last instant on
// record, so the time between two processes does not count. On macOS the Go
// runtime's clock, like CLOCK_MONOTONIC on Linux, stands still while the machine
// sleeps.
func machineClock() (int64, string) {
	return int64(time.Since(processStart)), processBoot
}
