//go:build !linux

package supervisor

import (
	"fmt"
	"os"
)

// bodyFile is a task's stdin: a file without a name that holds body. Unlike a
// pipe it needs nobody to feed it while the task does not read.
func bodyFile(body []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "sovereign-body-")
	if err != nil {
		return nil, fmt.Errorf("keep the body of a message for stdin: %w", err)
	}
	os.Remove(f.Name())
	if _, err := f.WriteAt(body, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("keep the body of a message for stdin: %w", err)
	}
	return f, nil
}
