package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// deepest is how far down a folder is cleared where it lies; what is deeper is moved up
// first, so that no depth takes more descriptors, each folder on the way holding one.
const deepest = 32

// maxPasses bounds how often what was moved up is cleared, for somebody may be making more.
const maxPasses = 1 << 14

// A clearing removes one tree, by descriptors: no name in it is followed, whatever is
// put in its place meanwhile, and what is mounted in it is left alone.
type clearing struct {
	top   int    // descriptor of the folder that is cleared
	mount uint64 // that it lies on
	moved int
}

// removeTree removes what path names with all that is in it. That it is gone already
// is no error. Where something is mounted in it that is said, and left with the
// folders on the way to it: to remove it would be to remove what it shows.
func removeTree(path string) error {
	err := unix.Unlink(path)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if unix.Rmdir(path) == nil {
		return nil
	}
	parent, err := openFolder(unix.AT_FDCWD, filepath.Dir(path))
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(parent)
	top, err := openFolder(parent, filepath.Base(path))
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(top)
	c := &clearing{top: top}
	around, err := mountOf(parent)
	if err == nil {
		c.mount, err = mountOf(top)
	}
	switch {
	case err != nil:
		return &os.PathError{Op: "stat", Path: path, Err: err}
	case c.mount != around:
		return mountedAt(path)
	}
	for pass, again := 0, true; again && pass < maxPasses; pass++ {
		before := c.moved
		if err := c.empty(top, path, 0); err != nil {
			return err
		}
		again = c.moved > before
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

func mountedAt(path string) error {
	return fmt.Errorf("something is mounted at %s: unmount it, then `sovereign recover`, or the next start, removes the rest", path)
}

// empty removes what is in the folder dir, which is called path. All of it is tried;
// the first error is returned.
func (c *clearing) empty(dir int, path string, depth int) (first error) {
	names, err := namesIn(dir)
	if err != nil {
		return &os.PathError{Op: "read", Path: path, Err: err}
	}
	for _, name := range names {
		if err := c.remove(dir, path, name, depth); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (c *clearing) remove(dir int, path, name string, depth int) error {
	inside := filepath.Join(path, name)
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return mountedAt(inside)
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return &os.PathError{Op: "remove", Path: inside, Err: err}
	}
	if unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	sub, opened := openFolder(dir, name)
	if errors.Is(opened, unix.ENOTDIR) {
		return &os.PathError{Op: "remove", Path: inside, Err: err}
	}
	if opened != nil {
		return &os.PathError{Op: "open", Path: inside, Err: opened}
	}
	defer unix.Close(sub)
	mount, err := mountOf(sub)
	if err != nil {
		return &os.PathError{Op: "stat", Path: inside, Err: err}
	}
	if mount != c.mount {
		return mountedAt(inside)
	}
	if depth >= deepest {
		for {
			c.moved++
			err := unix.Renameat(dir, name, c.top, ".deep-"+strconv.Itoa(c.moved))
			switch {
			case err == nil:
				return nil
			case !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR):
				return &os.PathError{Op: "move", Path: inside, Err: err}
			}
		}
	}
	if err := c.empty(sub, inside, depth+1); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "rmdir", Path: inside, Err: err}
	}
	return nil
}

// openFolder opens a folder, no link, to list and change what is in it, also one that
// its owner may not.
func openFolder(dir int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	follow := unix.O_NOFOLLOW
	if dir == unix.AT_FDCWD {
		follow = 0 // the way to the store's folder is the operator's
	}
	if dir != unix.AT_FDCWD {
		if fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
				// By way of the descriptor: what bears the name by now may be another.
				_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
			}
			_ = unix.Close(fd)
		}
	}
	return unix.Openat(dir, name, flags|follow, 0)
}

// mountOf names the mount that a folder lies on: the kernel's number of it, or, where
// that is not to be had (before Linux 5.8), the device.
func mountOf(fd int) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id, nil
	}
	var old unix.Stat_t
	if err := unix.Fstat(fd, &old); err != nil {
		return 0, err
	}
	return old.Dev, nil
}

func namesIn(dir int) ([]string, error) {
	own, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}
