package main

import (
	"os"
	"syscall"
	"testing"
)

// C3: a stop that comes while the program that takes over has not begun to serve, and then
// cannot, is passed back with those that it was given itself; nothing of it is lost. Have
// giveBack hear nothing that serve has not, or hand only what has come since, and this fails.
func TestTakeover_PassesBackWhatItHeardBeforeServing(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "@manager")
	early = catchEarly()
	t.Cleanup(func() { early = nil })
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	early.caught <- <-early.caught // it has come, and lies there
	given, give, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := give.Write([]byte{byte(syscall.SIGINT)}); err != nil {
		t.Fatal(err)
	}
	give.Close()
	fd, err := syscall.Dup(int(given.Fd())) // take closes it
	if err != nil {
		t.Fatal(err)
	}
	given.Close()

	over := &takeover{handoff: &handoff{Signals: uintptr(fd)}}
	over.hear()
	defer over.signals.stop()
	if _, err := over.signals.hand(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	n, err := over.signals.kept.Read(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := string([]byte{byte(syscall.SIGTERM), byte(syscall.SIGINT)}); string(got[:n]) != want {
		t.Errorf("the signals %v are passed back, want %v", got[:n], []byte(want))
	}
	if over.service.socket != "@manager" {
		t.Errorf("the service manager's socket is lost: %q", over.service.socket)
	}
}
