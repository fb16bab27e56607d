//go:build !linux

package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// removeTree removes what path names with all that is in it. That it is gone already
// is no error. Where another file system is mounted in it that is said, and nothing is
// removed: to remove it would be to remove what it shows.
func removeTree(path string) error {
	top, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = filepath.WalkDir(path, func(inside string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if device(info) != device(top) {
			return fmt.Errorf("something is mounted at %s: unmount it, then `sovereign recover`, or the next start, removes the rest", inside)
		}
		if info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(inside, 0o700) // before WalkDir reads it
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func device(info fs.FileInfo) any {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Dev
	}
	return nil
}
