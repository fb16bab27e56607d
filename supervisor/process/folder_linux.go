package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rootPrefix begins the name of every Host's folder, so that a leftover is
// never looked for in a folder that is not ours.
const rootPrefix = "sovereign-"

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
