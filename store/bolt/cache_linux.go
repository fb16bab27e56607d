package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache makes what is read of f from now on come from the disk.
//
// After a sync that failed the kernel goes on showing what it could not write, as
// if it were stored. Who builds on that builds on pages that a power cut takes
// away. So first everything is written that can still be written, and then what
// the kernel has in memory is forgotten.
func dropCache(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	// Where a file system has no such cache there is nothing to drop.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	return nil
}

// readAhead has n bytes of f from at be read from the disk, and does not wait for it.
func readAhead(f *os.File, at, n int64) { _ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED) }
