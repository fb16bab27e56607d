package server

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// throughOpenFolder calls fn with a path through the descriptor of the open
// folder. done is false where there is no /proc to go through.
func throughOpenFolder(folder, name string, fn func(path string) error) (done bool, err error) {
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true, err
	}
	defer unix.Close(fd)
	through := filepath.Join("/proc/self/fd", strconv.Itoa(fd))
	if unix.Access(through, unix.F_OK) != nil {
		return false, nil
	}
	return true, fn(filepath.Join(through, name))
}
