package supervisor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/scripts/machinetest"
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
	if ev := w.event(0, "ended", kind("hog", "exited")); !strings.HasPrefix(ev.Text, "killed by SIGKILL by the kernel for lack of memory (limits.memory is 4MiB)") {
		t.Errorf("beyond its memory: %q", ev.Text)
	}
	if ev := w.event(0, "ended", kind("forks", "exited")); !strings.Contains(ev.Text, "fork") {
		t.Errorf("beyond its processes: %q", ev.Text)
	}
	w.stop()

	// A receipt says so too, and not of the next process of the slot, which somebody kills.
	w = run(t, shell("task", config.Task, "if [ $SOVEREIGN_ATTEMPT = 2 ]; then kill -9 $$; fi; a=x; while :; do a=$a$a; done", func(a *config.Actor) {
		a.Limits.Memory, a.Retry.MaxAttempts = 8<<20, 2
	}), shell("part", config.Task, "(a=x; while :; do a=$a$a; done); exit 3", func(a *config.Actor) {
		a.Limits.Memory, a.Retry.MaxAttempts = 8<<20, 1
	}))
	for actor, want := range map[string][]mailbox.Receipt{
		"task": {{Category: mailbox.CategoryWorkerLost, Signal: "KILL", Reason: "killed by SIGKILL by the kernel for lack of memory (limits.memory is 8MiB)"},
			{Category: mailbox.CategoryWorkerLost, Signal: "KILL", Reason: "killed by SIGKILL"}},
		"part": {{Category: mailbox.CategoryExitStatus, Reason: "exit status 3, after the kernel had killed a process of its for lack of memory (limits.memory is 8MiB)"}},
	} {
		got := w.await(w.send(actor, "")).Receipts
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i].Category != want[i].Category || got[i].Signal != want[i].Signal ||
				!strings.HasPrefix(got[i].Reason, want[i].Reason) || i == 1 && got[i].Reason != want[i].Reason || !got[i].Counted {
				t.Errorf("%s: %+v, want %+v", actor, got, want)
			}
		}
	}
	if said := w.log.String(); !strings.Contains(said, "for lack of memory") {
		t.Errorf("the log does not say it: %s", said)
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
	program := machinetest.Build(t, "test", "-c") // these tests again
	said, _, err := machinetest.Run(t, limitsInit, "TEST_PROGRAM="+program, 6*time.Minute)
	if !bytes.Contains(said, []byte("=== RUN   TestLimits")) {
		t.Skipf("that machine does not start here: %v\n%s", err, said)
	}
	if !bytes.Contains(said, []byte("--- PASS: TestLimits ")) || !bytes.Contains(said, []byte("the limits were kept")) {
		t.Errorf("%v\n%s", err, said)
	}
}
