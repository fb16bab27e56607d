package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

func init() {
	roles["denied"] = func(s *supervisor) {
		s.host()
		var id process.Identity
		s.check(json.Unmarshal([]byte(s.args[0]), &id))
		s.check(syscall.Setuid(65534))
		_, err := s.EndLeftover(s.ctx, id, "", "")
		stuck, ok := errors.AsType[*process.StuckError](err)
		if !ok || len(stuck.PIDs) != 1 || stuck.PIDs[0] != id.PID || !errors.Is(err, syscall.EPERM) {
			s.fail("the recorded one: %v", err)
		}
		_, err = s.EndMarked(s.ctx, func(mark string) bool { return mark == s.args[1] })
		if err != nil { // its environment is not for us to read
			s.fail("the marked one: %v", err)
		}
	}
	roles["blind"] = func(s *supervisor) {
		s.host()
		p := s.start(sh("exec sleep 1000", ""))
		var was syscall.Rlimit
		s.check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
		s.check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: was.Max}))
		var stuck *process.StuckError
		for name, end := range map[string]func() (int, error){
			"recorded": func() (int, error) { return s.EndLeftover(s.ctx, p.ID(), "", "") },
			"marked":   func() (int, error) { return s.EndMarked(s.ctx, func(string) bool { return true }) },
		} {
			if n, err := end(); err == nil || errors.As(err, &stuck) {
				s.fail("%s: %d found, %v", name, n, err)
			}
		}
		s.check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
		if p.Exit() != (process.Exit{}) {
			s.fail("it has ended")
		}
		s.check(p.KillTree(s.ctx))
		s.check(s.Close())
	}
}

// C12: a leftover that may not be killed lives, and is reported like one that does
// not die; it is not taken for gone. Return EPERM as it is and this fails.
func TestEndLeftover_Denied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs a process of another user")
	}
	const mark = "proc_test_denied"
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), "SOVEREIGN_PROCESS="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	id, err := json.Marshal(identity(t, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	run(t, "denied", string(id), mark)
	if state(cmd.Process.Pid) == 0 {
		t.Error("it was killed all the same")
	}
}

// P4.9: where the processes cannot be looked at, that is an error, and not nobody.
// Have snapshot return nothing without an error and this fails.
func TestEndLeftover_Blind(t *testing.T) {
	t.Parallel()
	run(t, "blind")
}

// identity is that of a process which lives.
func identity(t *testing.T, pid int) process.Identity {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	id := process.Identity{BootID: strings.TrimSpace(string(boot)), PID: pid, PIDNamespace: namespace}
	rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if _, err := fmt.Sscan(rest[19], &id.StartTime); err != nil {
		t.Fatal(err)
	}
	return id
}
