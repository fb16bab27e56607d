package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// pidfdsWork reports whether the kernel has pidfds (Linux 5.4), as package os
// asks too before it relies on them.
func pidfdsWork() bool {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// sendExactly sends sig to the process that want describes, and to no other that
// has got its number since: the pidfd pins whoever has the number now, and only
// then is its start time compared. A process that is gone, or is another, is no
// error.
func sendExactly(want stat, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(want.pid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	defer unix.Close(fd)
	now, err := readStat(want.pid)
	if err != nil || now.start != want.start {
		return nil
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
