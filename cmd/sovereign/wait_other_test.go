//go:build !linux

package main

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// waitGone says whether the process is still alive when limit is over; a kqueue
// tells its end.
func waitGone(pid int, limit time.Duration) (alive bool) {
	kq, err := unix.Kqueue()
	if err != nil {
		return true
	}
	defer unix.Close(kq)
	event := unix.Kevent_t{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD, Fflags: unix.NOTE_EXIT}
	timeout := unix.NsecToTimespec(limit.Nanoseconds())
	n, err := unix.Kevent(kq, []unix.Kevent_t{event}, make([]unix.Kevent_t, 1), &timeout)
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	return err != nil || n == 0
}
