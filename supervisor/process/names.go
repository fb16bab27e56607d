package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is "SIGTERM", or "signal 40" for one without a name.
func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return fmt.Sprintf("signal %d", int(s))
}

// errnoName is "ENOENT", or "errno 999" for one without a name.
func errnoName(e syscall.Errno) string {
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return fmt.Sprintf("errno %d", int(e))
}
