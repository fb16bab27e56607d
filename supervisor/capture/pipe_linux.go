package capture

import "golang.org/x/sys/unix"

// capacity is how many bytes the pipe can hold; a child may have changed it.
func capacity(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil || n <= 0 {
		return 1 << 20 // the most that an unprivileged child may set
	}
	return n
}
