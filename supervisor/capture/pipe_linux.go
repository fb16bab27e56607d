package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// openPipe makes a pipe with an end for Go's poller, and one that blocks, as a child
// expects it. What os.Pipe makes would be known to the poller at both ends, which has
// to be undone for a child.
func openPipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// capacity is how many bytes the pipe can hold; a child may have changed it.
func capacity(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil || n <= 0 {
		return 1 << 20 // the most that an unprivileged child may set
	}
	return n
}
