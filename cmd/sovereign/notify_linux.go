package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock by which a service manager orders a reload: what it has asked
// for before is done.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
