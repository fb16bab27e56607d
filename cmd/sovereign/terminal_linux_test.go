package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is both ends of a pseudo-terminal. main is what a person sees; seen is what
// was read of it and not waited for yet.
type terminal struct {
	main, side *os.File
	seen       *bytes.Buffer
}

func openTerminal(t *testing.T) terminal {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	control, err := main.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = control.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if failed == nil {
			failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
		}
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { main.Close(); side.Close() })
	return terminal{main, side, &bytes.Buffer{}}
}

// onTerminal starts sovereign as the foreground program of a terminal of its own,
// and waits until what it prints holds ready.
func onTerminal(t *testing.T, dir string, tty terminal, ready string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(linkToSelf(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty.side, tty.side, tty.side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	tty.side.Close()
	readUntil(t, tty, ready)
	return cmd
}

// readUntil returns what comes up to want, and leaves what comes after that.
func readUntil(t *testing.T, tty terminal, want string) string {
	t.Helper()
	if err := tty.main.SetReadDeadline(time.Now().Add(testLimit)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	for !strings.Contains(tty.seen.String(), want) {
		n, err := tty.main.Read(b)
		tty.seen.Write(b[:n])
		if err != nil {
			t.Fatalf("%v, before %q was seen:\n%s", err, want, tty.seen.String())
		}
	}
	return string(tty.seen.Next(strings.Index(tty.seen.String(), want) + len(want)))
}

// counting writes a project whose one daemon notes each signal that reaches it, and
// ends a moment after TERM: long enough for a second signal to be seen.
func counting(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"actors.yaml": "version: 1\nactors:\n  count: {command: [sh, count.sh], mode: daemon, stop: {timeout: 25s}}\n",
		"count.sh": `for s in INT HUP QUIT; do trap "echo $s >> signals" $s; done
trap 'echo TERM >> signals; sleep 0.3; exit 0' TERM
echo counting
while :; do sleep 1000 & wait; done
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func signalsOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "signals"))
	if err != nil {
		t.Error(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// TestTerminal_CtrlCReachesChildrenOnce holds C9: a Ctrl-C on the terminal ends the
// run with 0, and each child gets one stop signal, from its supervisor alone.
func TestTerminal_CtrlCReachesChildrenOnce(t *testing.T) {
	dir, tty := counting(t), openTerminal(t)
	cmd := onTerminal(t, dir, tty, "counting\r", "run", "actors.yaml")
	if _, err := tty.main.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	readUntil(t, tty, "press Ctrl-C again")
	go io.Copy(io.Discard, tty.main) // ends when the terminal does
	if err := cmd.Wait(); err != nil {
		t.Errorf("run ended with %v, want 0", err)
	}
	if got := signalsOf(t, dir); got != "TERM" {
		t.Errorf("the child got %s, want one TERM", got)
	}
}

// TestTerminal_ClosingItStopsInOrder holds L1: the end of the terminal stops
// everything, and, though it is told more than once, with the time that a stop may
// take. Count SIGHUP as a second signal, and the child is killed before it ends.
func TestTerminal_ClosingItStopsInOrder(t *testing.T) {
	dir, tty := counting(t), openTerminal(t)
	cmd := onTerminal(t, dir, tty, "counting\r", "run", "actors.yaml")
	if err := tty.main.Close(); err != nil { // the kernel's SIGHUP
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGHUP) // the shell's
	if err := cmd.Wait(); err != nil {
		t.Errorf("run ended with %v, want 0", err)
	}
	if got := signalsOf(t, dir); got != "TERM" {
		t.Errorf("the child got %s, want one TERM", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".sovereign", "control.sock")); err == nil {
		t.Error("the socket is left")
	}
}

// TestTerminal_TablesFit: on a terminal of 80 columns no line of a table wraps.
func TestTerminal_TablesFit(t *testing.T) {
	dir, tty := counting(t), openTerminal(t)
	long := "version: 1\nactors:\n  " + strings.Repeat("n", 60) + ": {command: [cat]}\n  count: {command: [sh, count.sh], mode: daemon}\n"
	if err := os.WriteFile(filepath.Join(dir, "actors.yaml"), []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := onTerminal(t, dir, tty, "counting\r", "run", "actors.yaml")
	send := onTerminal(t, dir, openTerminal(t), "m1", "send", strings.Repeat("n", 60), "x", "--subject", strings.Repeat("subject 漢 ", 9), "--from", strings.Repeat("f", 60))
	if err := send.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"inbox"}, {"events"}, {"lease", "list"}} {
		second := openTerminal(t)
		look := onTerminal(t, dir, second, "", args...)
		text := readAll(second.main)
		if err := look.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
		for line := range strings.Lines(text) {
			if cells(strings.TrimRight(line, "\r\n")) > 80 {
				t.Errorf("%v: a line is wider than the terminal: %q", args, line)
			}
		}
		if strings.Count(text, "\n") < 2 || strings.Contains(text, "\x1b") {
			t.Errorf("%v printed %q", args, text)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	go io.Copy(io.Discard, tty.main)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// readAll reads until the other end is closed, which a terminal tells as an error.
func readAll(r *os.File) string {
	b, _ := io.ReadAll(r)
	return string(b)
}

// TestTerminal_IsNotMovedByChildren: what a child writes, as its log or as a result,
// clears no screen; elsewhere it is as it was written. Take the escaping from run,
// logs or send and this fails.
func TestTerminal_IsNotMovedByChildren(t *testing.T) {
	dir, tty := t.TempDir(), openTerminal(t)
	text := "version: 1\nactors:\n  clear: {command: \"printf '\\\\033[2J'; printf '\\\\033[2Jlogged\\\\n' >&2\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "actors.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := onTerminal(t, dir, tty, "look:", "run", "actors.yaml")
	seen := make(chan string, 1)
	go func() { seen <- readAll(tty.main) }()
	second := openTerminal(t)
	send := onTerminal(t, dir, second, "", "send", "clear", "x", "--wait")
	result := readAll(second.main)
	if err := send.Wait(); err != nil || result != "\\x1b[2J\r\n" {
		t.Errorf("the result is %q, %v", result, err)
	}
	third := openTerminal(t)
	logs := onTerminal(t, dir, third, "", "logs", "clear")
	if text := readAll(third.main); !strings.Contains(text, "\\x1b[2Jlogged") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("the log is %q", text)
	}
	if err := logs.Wait(); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if text := <-seen; !strings.Contains(text, "\\x1b[2Jlogged") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("run showed %q", text)
	}
	kept, err := os.ReadFile(filepath.Join(dir, ".sovereign", "logs", "clear.1.log"))
	if err != nil || !strings.Contains(string(kept), "\x1b[2Jlogged") {
		t.Errorf("the log file holds %q, %v", kept, err)
	}
}

// A batch that is waited for shows on a terminal how many have ended, and Ctrl-C names
// those that go on.
func TestTerminal_BatchShowsHowManyEnded(t *testing.T) {
	data := newStore(t)
	dir, tty := t.TempDir(), openTerminal(t)
	if err := os.WriteFile(filepath.Join(dir, "two"), []byte("{\"body\": \"a\"}\n{\"body\": \"b\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := onTerminal(t, dir, tty, "ended: 0 of 2", "send", "job", "--batch", "two", "--wait", "--data", data)
	readUntil(t, tty, "no supervisor runs: it waits")
	if _, err := tty.main.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	readUntil(t, tty, "2 of 2 messages go on: see `sovereign inbox show m1 m2`")
	if err := cmd.Wait(); err == nil {
		t.Error("it ended as if all were done")
	}
}

// A backup shows how far it is on a terminal and nowhere else: in a pipe there is the
// one line that says what was done, and with --json the exact size.
func TestTerminal_BackupShowsProgress(t *testing.T) {
	data := newStore(t)
	for range 3 {
		if status, _, stderr := sovereign(t, "send", "job", strings.Repeat("x", 100_000), "--data", data); status != 0 {
			t.Fatal(stderr)
		}
	}
	dir := t.TempDir()
	tty := openTerminal(t)
	cmd := onTerminal(t, dir, tty, "", "backup", "--data", data, "copy.db")
	seen := readUntil(t, tty, "backed up ")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if at := strings.Index(seen, "\r\x1b[Kbacked up"); at < 0 || !strings.Contains(seen[:at], "100% of ") {
		t.Errorf("the terminal shows %q", seen)
	}
	name := filepath.Join(dir, "piped.db")
	if status, stdout, stderr := sovereign(t, "backup", "--data", data, name); status != 0 || stderr != "" || strings.Count(stdout, "\n") != 1 || strings.Contains(stdout, "\r") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := sovereign(t, "backup", "--data", data, "--force", "--json", name)
	if want := fmt.Sprintf(`"bytes":%d`, info.Size()); status != 0 || stderr != "" || !strings.Contains(stdout, want) {
		t.Errorf("status %d, %q, %q; want %s", status, stdout, stderr, want)
	}
}

// TestTerminal_CancelSaysThatItWaits: to cancel a message that runs takes until its worker
// has ended, and a person is told what is done about it. Take tellCancelled away and this fails.
func TestTerminal_CancelSaysThatItWaits(t *testing.T) {
	f := newFollowable(t)
	f.supervised(t)
	follower, out := f.begun(t, "CLAIMED", "inbox", "--follow")
	_ = out.Close()
	endedBy(t, follower, syscall.SIGPIPE)
	tty := openTerminal(t)
	cancel := onTerminal(t, f.dir, tty, "m1 runs: its task is killed", "inbox", "cancel", "m1")
	readUntil(t, tty, "m1 is DEAD")
	if err := cancel.Wait(); err != nil {
		t.Error(err)
	}
}
