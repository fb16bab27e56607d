//go:build !linux

package wal

import "os"

// datasync syncs f.
func datasync(f *os.File) error { return f.Sync() }
