package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// machineClock returns CLOCK_MONOTONIC, which counts from the boot and stands
// still while the machine is suspended, and the identity of the boot.
func machineClock() (int64, string) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("bolt: CLOCK_MONOTONIC cannot be read: " + err.Error())
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		// Without /proc this process counts as a boot of its own: the clock goes
		// on from the last instant on record instead of counting the time between.
		return ts.Nano(), processBoot
	}
	return ts.Nano(), string(boot)
}
