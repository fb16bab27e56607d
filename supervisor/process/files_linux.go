package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
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
	given := h.given.Load()
	if given == nil {
		first, err := h.givenFiles(own)
		if err != nil {
			return own.Cur, fmt.Errorf("find the limit that children are to have: %w", err)
		}
		given = &first
	}
	more := unix.Rlimit{Cur: n, Max: max(n, own.Max)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&more)), 0, 0, 0); errno != 0 {
		return own.Cur, errno
	}
	h.given.Store(given) // from here on package syscall no longer restores it
	return n, nil
}

// givenFiles is the limit that the program was started with, while its own is still what
// package syscall has made of it: one less than the hard limit, where the soft one was
// lower. Only package syscall knows what that was, and gives it to each child: so a child
// is asked, which is killed before its first instruction.
func (h *Host) givenFiles(own unix.Rlimit) (given FileLimit, err error) {
	if own.Cur != own.Max-1 {
		return FileLimit{Soft: own.Cur, Hard: own.Max}, nil
	}
	if err := h.beginFork(); err != nil {
		return FileLimit{}, err
	}
	defer h.forks.Done()
	var asked error
	err = h.thread.do(context.Background(), nil, func([]int) { given, asked = h.askChild() })
	return given, errors.Join(err, asked)
}

// askChild runs on the spawner thread. Where tracing is forbidden the child, this program
// again, may come to say its version to nobody.
func (h *Host) askChild() (given FileLimit, err error) {
	h.beginForking()
	attr := &syscall.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Ptrace: true}}
	argv := []string{os.Args[0], "version"}
	pid, err := syscall.ForkExec("/proc/self/exe", argv, attr)
	if errors.Is(err, unix.EPERM) {
		attr.Sys.Ptrace = false
		pid, err = syscall.ForkExec("/proc/self/exe", argv, attr)
	}
	if err == nil {
		var got unix.Rlimit
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &got) // nobody has reaped it
		given = FileLimit{Soft: got.Cur, Hard: got.Max}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if pid > 0 {
		discard(pid)
	}
	h.endForkingLocked()
	return given, err
}

// childFiles is the limit of open files that a child gets; nil = ours, or what package
// syscall restores.
func (h *Host) childFiles(s Spec) *FileLimit {
	if s.NoFile > 0 {
		return &FileLimit{Soft: s.NoFile, Hard: s.NoFile}
	}
	return h.given.Load()
}
