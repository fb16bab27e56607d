package supervisor_test

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// leaveFiles sets the limit of open files of another process so that it can open so many
// more.
func leaveFiles(pid, more int) error {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			open[fd] = true
		}
	}
	n := 0
	for free := 0; free < more; n++ {
		if !open[n] {
			free++
		}
	}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(n), Max: uint64(n)}, nil)
}
