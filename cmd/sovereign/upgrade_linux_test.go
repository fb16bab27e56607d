package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lives says its number, and lives on.
const lives = "echo $$ >> pids; exec sleep 1000"

// everyPid are the processes that have ever been started.
func (f *fleetRun) everyPid() (pids []int) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "pids"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // none has come so far as to say it
		f.t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			f.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// running reports whether pid lives, is no zombie, and is a daemon of this fleet: its
// number may be another's by now.
func (f *fleetRun) running(pid int) bool {
	process := "/proc/" + strconv.Itoa(pid)
	folder, err := os.Readlink(process + "/cwd")
	if err != nil || folder != f.dir {
		return false
	}
	stat, err := os.ReadFile(process + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// signalled begins an upgrade and sends sig a while later, and returns once both the
// upgrade's command and the supervisor have ended.
func (f *fleetRun) signalled(sig syscall.Signal, after time.Duration) error {
	f.t.Helper()
	upgrade := exec.Command(f.program, "upgrade")
	upgrade.Dir = f.dir
	if err := upgrade.Start(); err != nil {
		f.t.Fatal(err)
	}
	<-time.After(after) // which moment of the upgrade that is differs, and is to
	if err := f.cmd.Process.Signal(sig); err != nil {
		f.t.Fatal(err)
	}
	var err error
	select {
	case err = <-f.over:
	case <-time.After(time.Minute):
		f.t.Fatalf("%s after %s is not heard\n%s", sig, after, f.said.String())
	}
	_ = upgrade.Wait() // it was, or was not, in time
	return err
}

// C3: a stop that comes at any moment of an upgrade is honoured, by the program that is there
// or by the one that comes: everything ends in order, and nothing is left. Have leave
// hand over no signals, and this fails now and then. In the few milliseconds in which the
// one that comes is only being loaded it ends that at once, and nothing is left either.
func TestUpgrade_StoppedAtAnyPoint(t *testing.T) {
	for n := range 12 {
		f := runFleet(t, 2, "true", lives, true)
		f.begun()
		after := time.Duration(n) * 15 * time.Millisecond
		err := f.signalled(syscall.SIGTERM, after)
		atOnce := f.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		if err != nil && !atOnce {
			t.Fatalf("stopped after %s: %v\n%s", after, err, f.said.String())
		}
		for _, pid := range f.everyPid() {
			for limit := time.Now().Add(time.Minute); f.running(pid) && atOnce && time.Now().Before(limit); {
				// its parent's death kills it, which is told to nobody
			}
			if f.running(pid) {
				t.Errorf("stopped after %s: process %d is left\n%s", after, pid, f.said.String())
			}
		}
		if atOnce {
			t.Logf("stopped after %s: at once", after)
			f.ask("verify")
		} else if got := f.ask("events"); !strings.Contains(got, "supervisor_stopped") {
			t.Errorf("stopped after %s: it did not end in order\n%s", after, got)
		}
	}
}

// One that is killed at any moment of an upgrade leaves nothing that lives beside what
// the next one starts (A1).
func TestUpgrade_KilledAtAnyPoint(t *testing.T) {
	f := runFleet(t, 2, "true", lives, true)
	for n := range 8 {
		f.begun()
		after := time.Duration(n) * 20 * time.Millisecond
		if f.signalled(syscall.SIGKILL, after) == nil {
			t.Fatal("it was not killed")
		}
		f.start("true", true)
		f.begun()
		now := map[int]bool{}
		for _, pid := range f.up(2) {
			now[pid] = true
		}
		for _, pid := range f.everyPid() {
			if f.running(pid) != now[pid] {
				t.Errorf("killed after %s: process %d runs: %t, wanted: %t\n%s", after, pid, f.running(pid), now[pid], f.said.String())
			}
		}
		f.ask("verify")
	}
	f.stop()
}

// J7: a reload that is asked for at any moment of an upgrade is carried out: by the program that
// comes or, where that cannot take over, by the one that goes on. SIGHUP and the command
// ask for it. Have hand leave out reloading, and this fails. (In the few milliseconds in which a program is only being loaded SIGHUP ends it,
// as it does every program then.)
func TestUpgrade_ReloadsWhateverBecomesOfIt(t *testing.T) {
	f := runFleet(t, 2, "true", lives, true)
	broken := filepath.Join(f.dir, "sovereign-breaks")
	if err := os.Symlink(f.program, broken); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(f.dir, "actors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.begun()
	reloads := func(events string) int { // made, or refused for what is in the file
		return strings.Count(events, " reload") - strings.Count(events, "the supervisor is starting")
	}
	added := 0
	hangUp := func() error { return f.cmd.Process.Signal(syscall.SIGHUP) }
	command := func() error { // a file that is wrong by then is refused
		reload := exec.Command(f.program, "reload")
		reload.Dir = f.dir
		if err := reload.Run(); err != nil && reload.ProcessState.ExitCode() != exitUsage {
			return err
		}
		return nil
	}
	try := func(ask func() error, after time.Duration, args ...string) {
		t.Helper()
		added++ // so that a reload has something to change
		file = fmt.Appendf(file, "  more%d: {command: 'exec sleep 1000', mode: daemon}\n", added)
		write := func() {
			if err := os.WriteFile(filepath.Join(f.dir, "actors.yaml"), file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write()
		before := reloads(f.ask("events"))
		upgrade := exec.Command(f.program, append([]string{"upgrade"}, args...)...)
		upgrade.Dir = f.dir
		if err := upgrade.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(after) // which moment of the upgrade that is differs, and is to
		if err := ask(); err != nil {
			t.Fatalf("asked after %s: %v\n%s", after, err, f.said.String())
		}
		_ = upgrade.Wait()
		for limit := time.Now().Add(time.Minute); ; {
			select {
			case <-f.over:
				t.Logf("asked after %s: it was only being loaded", after)
				write()
				f.start("true", true)
				f.begun()
				return
			default:
			}
			events := exec.Command(f.program, "events")
			events.Dir = f.dir
			if out, err := events.Output(); err == nil && reloads(string(out)) > before {
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("asked after %s: it was not reloaded\n%s", after, f.said.String())
			}
		}
	}
	for n := range 4 {
		after := time.Duration(n) * 40 * time.Millisecond
		try(hangUp, after, "--binary", broken)
		try(command, after, "--binary", broken)
	}
	try(hangUp, 40*time.Millisecond)
	if err := os.WriteFile(filepath.Join(f.dir, "told"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	try(func() error { return nil }, 0, "--binary", broken)
	f.stop()
}

// H4: a child that is started by a supervisor that was upgraded has the descriptors that
// it is to have, and no other: not one of all those that the exec passed on.
func TestUpgrade_PassesNoOtherDescriptor(t *testing.T) {
	f := runFleet(t, 3, "true", `ls /proc/self/fd > fds.$SOVEREIGN_SLOT.new && mv fds.$SOVEREIGN_SLOT.new fds.$SOVEREIGN_SLOT; exec sleep 1000`, true)
	f.begun()
	read := func(slot string) string {
		text, err := os.ReadFile(filepath.Join(f.dir, "fds."+slot))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	want := "0 1 2 3" // the fourth is that of the folder that ls reads
	f.up(3)
	for range 2 {
		f.ask("upgrade")
		f.ask("restart", "d")
		for _, slot := range []string{"1", "2", "3"} {
			await(t, filepath.Join(f.dir, "fds."+slot))
			if got := read(slot); got != want {
				t.Errorf("a child after an upgrade has the descriptors %q", got)
			}
			if err := os.Remove(filepath.Join(f.dir, "fds."+slot)); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.stop()
}

// await waits until there is a file at path.
func await(t *testing.T, path string) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("there never was %s", path)
		}
	}
}

// An upgrade that is asked for just before a stop is refused because of that, and not for
// the patience that has not run out. Ask only whether its own time is over, and this fails.
func TestUpgrade_StopWhileItAsks(t *testing.T) {
	f := runFleet(t, 1, "true", "exec sleep 1000", true)
	f.begun()
	asked := filepath.Join(f.dir, "asked")
	if err := syscall.Mkfifo(asked, 0o600); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(f.dir, "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho asked >'"+asked+"'\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	upgrade := exec.Command(f.program, "upgrade", "--binary", silent)
	upgrade.Dir = f.dir
	if err := upgrade.Start(); err != nil {
		t.Fatal(err)
	}
	defer upgrade.Wait()
	if _, err := os.ReadFile(asked); err != nil { // it is being asked
		t.Fatal(err)
	}
	f.stop()
	if said := f.said.String(); strings.Contains(said, checkFor.String()) {
		t.Errorf("a stop while another program is asked whether it could take over: %s", said)
	}
}
