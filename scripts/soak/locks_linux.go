package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Locks of open file descriptions are inherited with the descriptor and end when
// its last copy is closed: when the last process of a tree is dead. That is
// evidence that no bookkeeping of ours can get wrong.

// lockWhole locks the file, for writing (alone) or for reading (with others). It
// reports false where another lock is in the way.
func lockWhole(f *os.File, alone bool) (bool, error) {
	kind := int16(unix.F_RDLCK)
	if alone {
		kind = unix.F_WRLCK
	}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return true, nil
}

// isLocked says whether anybody holds a lock on the file at path. It takes none.
func isLocked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("ask for locks of %s: %w", path, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// inherit lets a descriptor pass to what is executed.
func inherit(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
	return err
}

// fleetProcesses are the processes that a supervisor of the run in folder has started,
// and what these have started, in the order of their numbers.
func fleetProcesses(folder string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && isOurs(pid, folder) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// isOurs says whether the process belongs to the fleet in folder: whatever a number
// means by now, nobody else's process is touched.
func isOurs(pid int, folder string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	whole := "\x00" + string(env)
	return err == nil && strings.Contains(whole, "\x00"+envFolder+"="+folder+"\x00") && strings.Contains(whole, "\x00SOVEREIGN_SLOT=")
}
