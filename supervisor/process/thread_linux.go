package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// execHere runs on the thread that makes the children, so none of ours is made
// meanwhile that could inherit keep.
func execHere(path string, argv, env []string, keep []uintptr) error {
	for _, fd := range keep {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
		defer unix.CloseOnExec(int(fd))
	}
	// As long as another thread lives it gets them, and notes them.
	var waits unix.Sigset_t
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		waits.Val[0] |= 1 << (sig - 1)
	}
	var before unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &waits, &before); err != nil {
		return fmt.Errorf("hold signals back: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, argv, env))
}
