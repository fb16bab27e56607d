package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// bodyFile is a task's stdin: a file in memory that holds body. Unlike a pipe it
// needs nobody to feed it while the task does not read.
func bodyFile(body []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("body", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("keep the body of a message for stdin: %w", err)
	}
	f := os.NewFile(uintptr(fd), "body")
	if _, err := f.WriteAt(body, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("keep the body of a message for stdin: %w", err)
	}
	return f, nil
}
