package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A leaf is the cgroup of one tree. It is opened only while something is done with it:
// five hundred children would else take five hundred descriptors for it.
type leaf struct {
	name, path string

	// killed leaves are not used again: Linux from 6.14 kills at once what is
	// cloned into a cgroup that cgroup.kill was ever written to, for it compares
	// that count with the one of the parent's cgroup.
	killed atomic.Bool
	// starved leaves are not used again either: their count begins at what it was.
	starved atomic.Bool
}

// open opens the leaf's folder, for a clone into it. O_PATH would not do: clone3 wants a
// readable one.
func (l *leaf) open() (fd int, err error) {
	fd, err = unix.Open(l.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: l.path, Err: err}
	}
	return fd, nil
}

// write writes one of the leaf's files.
func (l *leaf) write(file, value string) error {
	fd, err := unix.Open(filepath.Join(l.path, file), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Join(l.path, file), Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &os.PathError{Op: "write", Path: filepath.Join(l.path, file), Err: err}
	}
	return nil
}

// gone reports whether somebody has removed the leaf's folder: a service manager removes
// the empty cgroups of a service that it has just ended, and may come late.
func (l *leaf) gone() bool {
	_, err := os.Stat(l.path)
	return errors.Is(err, fs.ErrNotExist)
}

// remove removes an empty leaf, and the cgroups that its tree made in it.
func (l *leaf) remove() { removeCgroup(l.path) }

// removeCgroup removes a cgroup and those in it as far as they are empty.
func removeCgroup(path string) error {
	err := unix.Rmdir(path)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(path, e.Name()))
		}
	}
	return unix.Rmdir(path)
}

// empty reports whether nothing in the leaf lives. Zombies do not count.
func (l *leaf) empty() bool {
	fd, err := unix.Open(filepath.Join(l.path, "cgroup.events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) // removed
	}
	defer unix.Close(fd)
	return unpopulated(fd)
}

func unpopulated(fd int) bool {
	var buf [128]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return errors.Is(err, unix.ENODEV) // removed
	}
	return bytes.Contains(buf[:n], []byte("populated 0"))
}

// waitEmpty waits until nothing in the leaf lives, or until ctx ends. It costs
// no thread: a change of cgroup.events wakes Go's poller, and is read again.
func (l *leaf) waitEmpty(ctx context.Context) error {
	f, err := os.Open(filepath.Join(l.path, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("wait for events of %s: %w", l.path, err)
	}
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	err = conn.Read(func(fd uintptr) bool { return unpopulated(int(fd)) })
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ctx.Err()
	}
	return err
}

// kill sends SIGKILL to all in the leaf at once, also to what is being forked.
// Linux before 5.14 has no cgroup.kill: then it fails with fs.ErrNotExist. A leaf that
// another supervisor has removed meanwhile was empty.
func (l *leaf) kill() error {
	l.killed.Store(true)
	err := l.write("cgroup.kill", "1")
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// sawOOM reports whether the kernel has killed anything in the leaf for lack of memory.
func (l *leaf) sawOOM() bool {
	text, err := os.ReadFile(filepath.Join(l.path, "memory.events"))
	if err == nil && oomKills(string(text)) > 0 {
		l.starved.Store(true)
	}
	return l.starved.Load()
}

// oomKills is how many processes the kernel has killed for lack of memory, by
// memory.events.
func oomKills(events string) (n uint64) {
	for line := range strings.Lines(events) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ = strconv.ParseUint(strings.TrimSpace(count), 10, 64) // 0 where it cannot be read
		}
	}
	return n
}

// pids are the processes in the leaf and in the cgroups below it.
func (l *leaf) pids() []int {
	var pids []int
	filepath.WalkDir(l.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		f, err := os.Open(filepath.Join(path, "cgroup.procs"))
		if err != nil {
			return nil
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
