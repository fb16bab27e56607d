package wal

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// datasync syncs the content of f, and of its attributes what is needed to read it.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
		}
		return nil
	}
}
