//go:build !linux

package bolt

import "os"

// allocate gives f size bytes of room on the disk. What f has already was written.
func allocate(f *os.File, size int64) error {
	if info, err := f.Stat(); err == nil && info.Size() >= size {
		return nil
	}
	return fill(f, size)
}
