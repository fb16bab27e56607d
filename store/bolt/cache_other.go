//go:build !linux

package bolt

import "os"

// dropCache writes what can still be written. What the kernel shows after a sync
// that failed cannot be forgotten here.
func dropCache(f *os.File) error { return f.Sync() }

// readAhead does nothing: what is read is waited for.
func readAhead(*os.File, int64, int64) {}
