package main

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// waitGone waits until the process has ended, at most for limit, and says whether
// it is still alive. A pidfd becomes readable at the end.
func waitGone(pid int, limit time.Duration) (alive bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return n == 0
	}
}
