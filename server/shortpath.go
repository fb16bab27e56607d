package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path that a socket address holds, its closing
// zero not counted: 104 bytes on BSD and macOS, 108 on Linux. The smaller one
// counts everywhere, so that workers in any language can connect.
const maxSocketPath = 103

// throughShortPath calls fn with a path of folder/name that a socket address
// holds: the path itself, or, where that is too long, one through the open
// folder or a symbolic link that lives as long as the call.
func throughShortPath(folder, name string, fn func(path string) error) error {
	if path := filepath.Join(folder, name); len(path) <= maxSocketPath {
		return fn(path)
	}
	if done, err := throughOpenFolder(folder, name, fn); done {
		return err
	}
	target, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(shortBase(), "sovereign-")
	if err != nil {
		return fmt.Errorf("make a short path for a socket: %w", err)
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "d")
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("make a short path for a socket: %w", err)
	}
	return fn(filepath.Join(link, name))
}

// A shortFolder holds a second socket under a short path that every user can
// reach, and a link to the folder of the store whose socket it is.
type shortFolder struct {
	folder string
	record string // the link in the store's folder by which a next start finds ours
	conns  *net.UnixListener
}

const (
	dataLink    = "data"              // in the short folder: the store's folder
	shortRecord = WorkerSocket + ".d" // in the store's folder: the short folder
)

func newShortFolder(data string, mode fs.FileMode) (*shortFolder, error) {
	folder, err := os.MkdirTemp(shortBase(), "sovereign-")
	if err != nil {
		return nil, fmt.Errorf("make a short path for %s: %w", WorkerSocket, err)
	}
	s := &shortFolder{folder: folder, record: filepath.Join(data, shortRecord)}
	// The record is first: a crash after it leaves what removeLeftover finds.
	err = os.Symlink(folder, s.record)
	if err == nil {
		err = os.Symlink(data, filepath.Join(folder, dataLink))
	}
	if err == nil {
		s.conns, err = bind(folder, WorkerSocket, mode)
	}
	if err == nil {
		// 0711: others may pass through, not look around. MkdirTemp made it 0700.
		err = os.Chmod(folder, 0o711)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a short path for %s: %w", WorkerSocket, err), s.Close())
	}
	return s, nil
}

func (s *shortFolder) Close() error {
	var err error
	if s.conns != nil {
		err = s.conns.Close()
	}
	return errors.Join(err, os.RemoveAll(s.folder), os.Remove(s.record))
}

// removeLeftover removes the short folder of a supervisor that died. Only what
// points back to this store is removed.
func removeLeftover(data string) {
	record := filepath.Join(data, shortRecord)
	folder, err := os.Readlink(record)
	if err != nil {
		return
	}
	if back, err := os.Readlink(filepath.Join(folder, dataLink)); err == nil && back == data {
		_ = os.RemoveAll(folder)
	}
	_ = os.Remove(record)
}

// DataOf returns the folder of the store that a socket belongs to, from the
// socket's path as SOVEREIGN_SOCKET holds it.
func DataOf(socket string) string {
	folder := filepath.Dir(socket)
	if data, err := os.Readlink(filepath.Join(folder, dataLink)); err == nil {
		return data
	}
	return folder
}

// openToAll reports whether children of every user can reach what lies in
// folder. A supervisor that is not root has children of its own user only.
func openToAll(folder string) bool {
	if os.Geteuid() != 0 {
		return true
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	for _, way := range []string{folder, real} {
		for ; ; way = filepath.Dir(way) {
			info, err := os.Stat(way)
			if err != nil || info.Mode().Perm()&0o001 == 0 {
				return false
			}
			if way == filepath.Dir(way) {
				break
			}
		}
	}
	return true
}

// shortBase is a folder with a short path in which every user's own folders
// can be reached by its children.
func shortBase() string {
	var candidates []string
	switch {
	case os.Geteuid() == 0 && runtime.GOOS == "linux":
		candidates = append(candidates, "/run")
	case os.Geteuid() != 0:
		candidates = append(candidates, os.Getenv("XDG_RUNTIME_DIR"))
	}
	candidates = append(candidates, os.TempDir(), "/tmp")
	const room = maxSocketPath - len("/sovereign-0123456789/") - len(WorkerSocket+".new")
	for _, dir := range candidates {
		if dir == "" || len(dir) > room || !filepath.IsAbs(dir) || !openToAll(dir) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir
		}
	}
	return "/tmp"
}
