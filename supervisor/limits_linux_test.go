package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// limits.memory and limits.pids are kept where a cgroup with these controllers is
// delegated, and refused with the reason where none is. Leave out EnableLimits in
// launch and this fails on both.
func TestLimits(t *testing.T) {
	why := theHost.EnableLimits()
	w := run(t, shell("d", config.Daemon, "exec sleep 1000", func(a *config.Actor) {
		a.Limits = config.Limits{Memory: 64 << 20, Pids: 7}
		a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour
	}))
	if why != nil {
		ev := w.event(0, "refused", kind("d", "spawn_failed"))
		if want := "limits of memory and pids cannot be kept: " + why.Error(); !strings.Contains(ev.Text, want) {
			t.Errorf("it says %q, want %q", ev.Text, want)
		}
		return
	}
	pid := w.state("d", "up").PID
	lines, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := bytes.Cut(lines, []byte("0::"))
	for file, want := range map[string]string{"memory.max": "67108864", "pids.max": "7"} {
		got, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", string(bytes.TrimSpace(path)), file))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, %v", file, got, err)
		}
	}
	w.stop()

	// What the kernel makes of them.
	once := func(a *config.Actor) { a.Restart = config.Never }
	w = run(t, shell("hog", config.Daemon, "a=x; while :; do a=$a$a; done", once, func(a *config.Actor) { a.Limits.Memory = 4 << 20 }),
		shell("forks", config.Daemon, "for n in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done", once, func(a *config.Actor) { a.Limits.Pids = 5 }))
	if ev := w.event(0, "ended", kind("hog", "exited")); !strings.Contains(ev.Text, "killed by SIGKILL") {
		t.Errorf("beyond its memory: %q", ev.Text)
	}
	if ev := w.event(0, "ended", kind("forks", "exited")); !strings.Contains(ev.Text, "fork") {
		t.Errorf("beyond its processes: %q", ev.Text)
	}
	t.Log("the limits were kept")
}

// limitsInit is the first process of a machine that TestLimits runs on.
const limitsInit = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TMPDIR=/dev/shm
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
cd /dev/shm
"$TEST_PROGRAM" -test.run='^TestLimits$' -test.v
echo o > /proc/sysrq-trigger
read -r forever
`

// TestLimits where this machine's cgroup v2 has not the controllers that it needs: on a
// machine of its own, which is a Linux that runs as a process (user-mode-linux) and has
// this one's files to read.
func TestLimits_OnAMachineThatHasThem(t *testing.T) {
	if theHost.EnableLimits() == nil {
		t.Skip("this machine has them: TestLimits")
	}
	kernel, err := exec.LookPath("linux.uml")
	if err != nil {
		t.Skip("it needs linux.uml (Debian: user-mode-linux)")
	}
	dir := t.TempDir()
	// These tests again, without the race detector, for which that machine has no room.
	program := filepath.Join(dir, "supervisor.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := filepath.Join(dir, "init")
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		t.Skip("it needs /dev/shm, for that machine's memory")
	}
	if err := os.WriteFile(first, []byte(limitsInit), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	machine := exec.CommandContext(ctx, kernel, "mem=256M", "quiet", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		"init="+first, "TEST_PROGRAM="+program, "con=null", "con0=null,fd:1")
	machine.Dir = dir
	machine.Env = append(os.Environ(), "HOME="+dir, "TMPDIR=/dev/shm")
	machine.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	machine.Cancel = func() error { return syscall.Kill(-machine.Process.Pid, syscall.SIGKILL) }
	machine.WaitDelay = 10 * time.Second
	said, err := machine.CombinedOutput()
	if !bytes.Contains(said, []byte("=== RUN   TestLimits")) {
		t.Skipf("that machine does not start here: %v\n%s", err, said)
	}
	if !bytes.Contains(said, []byte("--- PASS: TestLimits ")) || !bytes.Contains(said, []byte("the limits were kept")) {
		t.Errorf("%v\n%s", err, said)
	}
}
