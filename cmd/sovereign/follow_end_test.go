package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// followable is a folder with an actors.yaml, and the program that runs there.
type followable struct{ dir, program string }

func newFollowable(t *testing.T) followable {
	t.Helper()
	f := followable{dir: t.TempDir(), program: linkToSelf(t)}
	yaml := "version: 1\nactors:\n  up: {command: \"echo up; exec sleep 1000\", mode: daemon}\n  idle: {command: \"exec sleep 1000\", mode: task}\n"
	if err := os.WriteFile(filepath.Join(f.dir, "actors.yaml"), []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f followable) command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.program, args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}

// begun starts sovereign, and returns once it has written a line that holds what: its output
// is the rest.
func (f followable) begun(t *testing.T, what string, args ...string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	cmd := f.command(args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("sovereign %s: %v before it wrote %q", strings.Join(args, " "), err, what)
		}
		if strings.Contains(line, what) {
			return cmd, out
		}
	}
}

// supervised starts a supervisor, which ends with the test, and sends m1, whose task never
// ends.
func (f followable) supervised(t *testing.T) {
	t.Helper()
	supervisor, out := f.begun(t, "| up", "run", "actors.yaml")
	go io.Copy(io.Discard, out) // ends with the process
	t.Cleanup(func() {
		if err := supervisor.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := supervisor.Wait(); err != nil {
			t.Errorf("the supervisor ended with %v", err)
		}
	})
	if out, err := f.command("send", "idle", "x").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// endedBy fails the test unless cmd ends by the signal.
func endedBy(t *testing.T, cmd *exec.Cmd, want syscall.Signal) {
	t.Helper()
	err := cmd.Wait()
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ended.Sys().(syscall.WaitStatus).Signal() != want {
		t.Errorf("%s ended with %v, want by %v", strings.Join(cmd.Args[1:], " "), err, want)
	}
}

// Whatever follows ends at SIGINT as at every signal, by it: a shell sees that it was
// stopped, and a script of several stops too. Have one catch the signal and end with 0,
// and this fails.
func TestFollowers_EndByTheSignal(t *testing.T) {
	// Caught here, it has its default effect there, whoever ignores it around the test.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	t.Cleanup(func() { signal.Reset(os.Interrupt) })
	f := newFollowable(t)
	f.supervised(t)
	for _, follow := range []struct {
		line string
		args []string
	}{
		{"| up", []string{"logs", "up", "--follow"}}, {"started", []string{"events", "--follow"}},
		{"m1", []string{"inbox", "--follow"}}, {"idle", []string{"status", "--watch", "--json"}},
	} {
		cmd, out := f.begun(t, follow.line, follow.args...)
		go io.Copy(io.Discard, out) // ends with the process
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		endedBy(t, cmd, syscall.SIGINT)
	}
}
