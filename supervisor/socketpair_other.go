//go:build !linux

package supervisor

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// socketpairCloexec holds the fork lock: without SOCK_CLOEXEC a child forked in
// between would inherit both ends.
func socketpairCloexec() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds, err
}
