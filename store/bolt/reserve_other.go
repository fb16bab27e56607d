//go:build !linux

package bolt

import "os"

// allocate gives f size bytes of room on the disk.
func allocate(f *os.File, size int64) error { return fill(f, size) }
