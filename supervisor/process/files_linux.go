package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// raiseFiles uses the bare system call: through package unix it would be taken for a
// limit that children are to have.
func (h *Host) raiseFiles(n uint64) (limit uint64, err error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil || own.Cur >= n {
		return own.Cur, err
	}
	more := unix.Rlimit{Cur: n, Max: max(n, own.Max)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&more)), 0, 0, 0); errno != 0 {
		return own.Cur, errno
	}
	// Package os has raised the soft limit to the hard one where they differ, and a
	// fork of package syscall undoes that. Where they do not it knows of nothing.
	h.given.CompareAndSwap(0, own.Cur)
	return n, nil
}

// childFiles is the limit of open files that a child gets; 0 = ours, or what package
// syscall restores.
func (h *Host) childFiles(s Spec) uint64 {
	if s.NoFile > 0 {
		return s.NoFile
	}
	return h.given.Load()
}
