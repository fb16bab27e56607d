package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// canTakeOver says whether a program can take another one's place here and keep its
// children.
const canTakeOver = true

// memoryFile is a file without a name, in memory.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// duplicate is another descriptor of the same open file.
func duplicate(fd uintptr, name string) (*os.File, error) {
	own, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(own), name), nil
}
