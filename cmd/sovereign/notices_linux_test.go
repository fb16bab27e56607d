package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullPipe is a pipe that takes no more; nobody reads it.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	for {
		if _, err := unix.Write(fds[1], make([]byte, 4096)); errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[1]), "full pipe")
}

// G1, C4: a supervisor whose terminal, pager or log reader has stopped reading starts,
// obeys, and stops. Have the log, or the notice of a stop, written to stderr by whoever
// says it, and this fails.
func TestRun_WhereNobodyReads(t *testing.T) {
	f := &fleetRun{t: t, dir: t.TempDir()}
	f.declare(1, "exec sleep 1000")
	unread := fullPipe(t)
	cmd := exec.Command(f.program, "run", "actors.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.dir, unread, unread
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	unread.Close()
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	f.begun()
	f.ask("restart", "d")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-over:
		if err != nil {
			t.Errorf("a stop where nobody reads: %v", err)
		}
	case <-time.After(testLimit):
		t.Error("a stop where nobody reads is not over after", testLimit)
	}
}
