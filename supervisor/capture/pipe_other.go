//go:build !linux

package capture

import (
	"errors"
	"os"
	"syscall"
)

// openPipe makes a pipe with an end for Go's poller, and one that blocks, as a child
// expects it. Our end is an open file of its own and stays non-blocking.
func openPipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := setBlocking(w); err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	return r, w, nil
}

func setBlocking(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = conn.Control(func(fd uintptr) { setErr = syscall.SetNonblock(int(fd), false) })
	return errors.Join(err, setErr)
}

// capacity is how many bytes the pipe can hold, or more.
func capacity(int) int { return 1 << 20 }
