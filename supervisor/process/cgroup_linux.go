package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// rootPrefix begins the name of every Host's folder, so that a leftover is
// never looked for in a folder that is not ours.
const rootPrefix = "sovereign-"

// maxIdle bounds the leaves that are kept for the next child of their name:
// making and removing one costs about as much as a tenth of a start.
const maxIdle = 128

var errNoCgroup = errors.New("no writable cgroup v2: run under systemd with Delegate=yes, or as root")

// A cgroups is a Host's folder in the cgroup v2 file system, own/sovereign-…,
// and the leaves in it, one for each tree.
type cgroups struct {
	own  string // the cgroup that the supervisor was started in
	root string
	lock *os.File // root, locked for as long as this program lives

	watching chan struct{} // holds one for each tree whose end is waited for

	mu      sync.Mutex
	idle    map[string]*leaf // mu guards; empty leaves by name
	busy    map[string]*leaf // mu guards
	limits  bool             // mu guards; memory and pids are enabled
	moved   bool             // mu guards; the supervisor is in a leaf of its own
	enabled string           // mu guards; what was added to own's subtree_control
}

// A leaf is the cgroup of one tree. It is opened only while something is done with it:
// five hundred children would else take five hundred descriptors for it.
type leaf struct {
	name, path string

	// killed leaves are not used again: Linux from 6.14 kills at once what is
	// cloned into a cgroup that cgroup.kill was ever written to, for it compares
	// that count with the one of the parent's cgroup.
	killed atomic.Bool
}

// findCgroups makes the Host's folder, or says why there can be none. One that is
// inherited is taken over.
func findCgroups(from *InheritedCgroups) (*cgroups, error) {
	c := &cgroups{idle: map[string]*leaf{}, busy: map[string]*leaf{}, watching: make(chan struct{}, maxWatching)}
	var err error
	if from != nil {
		c.own, c.root, c.limits, c.moved, c.enabled = from.Own, from.Root, from.Limits, from.Moved, from.Enabled
		c.lock, err = lockFolder(c.root)
		if err == nil && c.lock == nil {
			// Empty, and swept in the moment in which nobody held its lock.
			if err = os.MkdirAll(c.root, 0o755); err == nil {
				c.lock, err = lockFolder(c.root)
			}
		}
		return c, err
	}
	if c.own, err = ownCgroup(); err != nil {
		return nil, err
	}
	// To clone into a leaf takes write access to cgroup.procs of the common
	// ancestor, which is our own cgroup: without delegation it is root's.
	if err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(c.own, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS); err != nil {
		return nil, fmt.Errorf("write to %s: %w", c.own, err)
	}
	sweepFolders(c.own)
	for c.lock == nil {
		c.root = filepath.Join(c.own, rootPrefix+strings.ToLower(rand.Text()[:12]))
		if err := os.Mkdir(c.root, 0o755); err != nil {
			return nil, err
		}
		// nil: another Host swept it before it was locked
		if c.lock, err = lockFolder(c.root); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// lockFolder locks a Host's folder against sweepFolders; nil = it is gone, or
// another program holds it.
func lockFolder(root string) (*os.File, error) {
	f, err := os.Open(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	if _, err := os.Stat(root); err != nil {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// sweepFolders removes what dead supervisors left of their folders. A folder
// with processes in it cannot be removed; those are EndLeftover's.
func sweepFolders(own string) {
	folders, _ := filepath.Glob(filepath.Join(own, rootPrefix+"*"))
	for _, root := range folders {
		if f, err := lockFolder(root); err == nil && f != nil {
			removeCgroup(root)
			f.Close()
		}
	}
}

// ownCgroup is the folder of this program's cgroup v2.
func ownCgroup() (string, error) {
	member, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	path := ""
	for line := range strings.Lines(string(member)) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(p, "\n")
		}
	}
	if path == "" {
		return "", errors.New("this program is in no cgroup v2")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return cgroupDir(string(mounts), path)
}

// cgroupDir finds path, as in /proc/self/cgroup, among the mounts of
// /proc/self/mountinfo: "ID PARENT DEV ROOT POINT OPTIONS [TAG…] - TYPE SOURCE …".
func cgroupDir(mountinfo, path string) (string, error) {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		field := strings.Fields(before)
		if !ok || len(field) < 6 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, point := unescape(field[3]), unescape(field[4])
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue // a mount that does not show our cgroup
		}
		return filepath.Join(point, rel), nil
	}
	return "", fmt.Errorf("no mount shows cgroup v2 %s", path)
}

// unescape undoes \040 and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// take gives the empty leaf name to a new tree, with these limits (0 = none).
func (c *cgroups) take(name string, memory, pids int64) (*leaf, error) {
	if !validLeaf(name) {
		return nil, fmt.Errorf("cgroup name %q: %w", name, unix.EINVAL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[name] != nil {
		return nil, fmt.Errorf("%s still holds an earlier tree: %w", c.busy[name].path, unix.EBUSY)
	}
	l := c.idle[name]
	delete(c.idle, name)
	if l == nil {
		var err error
		if l, err = c.make(name); err != nil {
			return nil, err
		}
	}
	if c.limits {
		for file, value := range map[string]int64{"memory.max": memory, "pids.max": pids} {
			if err := l.write(file, limitText(value)); err != nil {
				l.remove()
				return nil, err
			}
		}
	}
	c.busy[name] = l
	return l, nil
}

func limitText(n int64) string {
	if n == 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func validLeaf(name string) bool {
	if name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "cgroup.") || name == supervisorLeaf {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

func (c *cgroups) make(name string) (*leaf, error) {
	path := filepath.Join(c.root, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &leaf{name: name, path: path}, nil
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

// inherit is the leaf of a child of an earlier image; nil = it is gone.
func (c *cgroups) inherit(path string) *leaf {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil
	}
	l := &leaf{name: filepath.Base(path), path: path}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[l.name] = l
	return l
}

// handOff describes the folder, without the leaves that nothing is in.
func (c *cgroups) handOff() *InheritedCgroups {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, l := range c.idle {
		l.remove()
		delete(c.idle, name)
	}
	return &InheritedCgroups{Own: c.own, Root: c.root, Limits: c.limits, Moved: c.moved, Enabled: c.enabled}
}

// gone reports whether somebody has removed the leaf's folder: a service manager removes
// the empty cgroups of a service that it has just ended, and may come late.
func (l *leaf) gone() bool {
	_, err := os.Stat(l.path)
	return errors.Is(err, fs.ErrNotExist)
}

// forget gives up a leaf that is gone: it is made anew when it is taken again.
func (c *cgroups) forget(l *leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, l.name)
}

// put takes a leaf back whose tree is gone.
func (c *cgroups) put(l *leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, l.name)
	if len(c.idle) >= maxIdle || l.killed.Load() {
		l.remove()
		return
	}
	c.idle[l.name] = l
}

// remove removes all that is empty, at Close.
func (c *cgroups) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, l := range c.idle {
		l.remove()
		delete(c.idle, name)
	}
	c.moveBack()
	unix.Rmdir(c.root)
	if c.lock != nil {
		c.lock.Close()
	}
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

// maxWatching bounds the descriptors that are taken when everything ends at once.
const maxWatching = 64

// watch waits for its turn to wait for the end of a tree; then unwatch is to be called.
// Those before it may be trees that do not die: after a while it goes on beside them.
func (c *cgroups) watch(ctx context.Context) (unwatch func(), err error) {
	select {
	case c.watching <- struct{}{}:
		return func() { <-c.watching }, nil
	default:
	}
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case c.watching <- struct{}{}:
		return func() { <-c.watching }, nil
	case <-patience.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
