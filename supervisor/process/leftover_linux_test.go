package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A record is what a supervisor keeps on disk of a child.
type record struct {
	ID     process.Identity
	Mark   string
	Cgroup string
}

// waitDead waits until a process is dead, by pidfd, or fails after limit.
func waitDead(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("%d lives: %v", pid, err)
		}
		return
	}
}

// P4.9, A1, E5: a supervisor is killed. Its direct child dies of that; what it had
// started in other sessions, stopped or not, lives, and the next supervisor ends
// all of it.
func TestEndLeftover_OfAKilledSupervisor(t *testing.T) {
	t.Parallel()
	for _, cgroup := range []string{"leaf", ""} {
		for _, how := range []string{"recorded", "marked"} {
			t.Run(fmt.Sprintf("%s %q", how, cgroup), func(t *testing.T) {
				t.Parallel()
				if cgroup != "" {
					needCgroup(t)
				}
				cmd := command(t, "to-be-killed", cgroup)
				lines := begin(t, cmd)
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				var pids [4]int
				for i := range pids {
					fmt.Fscan(lines, &pids[i])
				}
				var r record
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				cmd.Process.Kill() // SIGKILL: it can clean up nothing
				cmd.Wait()
				waitDead(t, r.ID.PID) // by its parent-death signal
				for _, pid := range pids {
					if state(pid) == 0 {
						t.Fatalf("%d died with its supervisor: the test has nothing to find", pid)
					}
				}
				got := strings.TrimSpace(run(t, "restarted", how, line))
				if want := "4"; got != want {
					t.Errorf("found %s leftovers, want %s", got, want)
				}
				for _, pid := range pids {
					if state(pid) != 0 {
						t.Errorf("%d lives", pid)
					}
				}
				if r.Cgroup != "" {
					if how == "marked" {
						run(t, "restarted", "recorded", line) // removes the folder
					}
					if _, err := os.Stat(filepath.Dir(r.Cgroup)); err == nil {
						t.Errorf("%s is still there", filepath.Dir(r.Cgroup))
					}
				}
			})
		}
	}
}

func init() {
	roles["to-be-killed"] = func(s *supervisor) {
		s.host()
		spec := sh(`setsid sleep 1000 & echo $!
			setsid sh -c 'setsid sleep 1000 & echo $!; exec sleep 1000' & echo $!
			setsid sh -c 'echo $$; kill -STOP $$' &
			exec sleep 1000`, s.args[0])
		p, lines := s.startLines(spec, 4)
		s.check(json.NewEncoder(os.Stdout).Encode(record{p.ID(), spec.Mark, p.Cgroup()}))
		fmt.Println(strings.Join(lines, "\n"))
		io.Copy(io.Discard, os.Stdin)
		select {}
	}
	roles["restarted"] = func(s *supervisor) {
		s.host()
		var r record
		s.check(json.Unmarshal([]byte(s.args[1]), &r))
		var found int
		var err error
		if s.args[0] == "recorded" {
			found, err = s.EndLeftover(s.ctx, r.ID, r.Mark, r.Cgroup)
		} else {
			found, err = s.EndMarked(s.ctx, func(mark string) bool { return mark == r.Mark })
		}
		s.check(err)
		fmt.Println(found)
		// A second pass finds nothing.
		again, err := s.EndLeftover(s.ctx, r.ID, r.Mark, r.Cgroup)
		if again != 0 || err != nil {
			s.fail("again: %d, %v", again, err)
		}
		s.check(s.Close())
	}
}

// B1, B2: a recorded number that now belongs to somebody else is left alone,
// whatever differs: start time, boot, namespace. Compare less and the stranger
// dies.
func TestEndLeftover_SparesAStranger(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer stranger.Wait()
	defer stranger.Process.Kill()
	run(t, "strangers", fmt.Sprint(stranger.Process.Pid))
	if state(stranger.Process.Pid) == 0 {
		t.Error("the stranger was killed")
	}
}

func init() {
	roles["strangers"] = func(s *supervisor) {
		s.host()
		var pid int
		fmt.Sscan(s.args[0], &pid)
		// Our own child's identity tells boot and namespace.
		p := s.start(process.Spec{Argv: []string{"sleep", "1000"}, Umask: -1})
		id := p.ID()
		id.PID, id.StartTime = pid, startTime(pid)
		for name, change := range map[string]func(*process.Identity){
			"start time": func(id *process.Identity) { id.StartTime-- },
			"boot":       func(id *process.Identity) { id.BootID = "00000000-0000-0000-0000-000000000000" },
			"namespace":  func(id *process.Identity) { id.PIDNamespace = "pid:[1]" },
			"unknown":    func(id *process.Identity) { id.StartTime = 0 },
		} {
			other := id
			change(&other)
			if found, err := s.EndLeftover(s.ctx, other, "", ""); found != 0 || err != nil {
				s.fail("%s: found %d, %v", name, found, err)
			}
			if state(pid) == 0 {
				s.fail("%s differs, and the stranger is dead", name)
			}
		}
		if found, err := s.EndLeftover(s.ctx, process.Identity{}, "", ""); found != 0 || err != nil {
			s.fail("zero: %d, %v", found, err)
		}
		if found, err := s.EndLeftover(s.ctx, process.Identity{}, "proc_nobody", ""); found != 0 || err != nil {
			s.fail("mark: %d, %v", found, err)
		}
		if _, err := s.EndLeftover(s.ctx, id, "", "/sys/fs/cgroup"); err == nil {
			s.fail("a cgroup that is none of ours was accepted")
		}
		s.check(s.Close())
	}
}

func startTime(pid int) uint64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var n uint64
	fmt.Sscan(f[19], &n)
	return n
}

// A sweep by mark never ends the program that sweeps, nor what runs it, though
// they carry the mark themselves.
func TestEndMarked_SparesItsOwnAncestors(t *testing.T) {
	t.Parallel()
	cmd := command(t, "marked-sweeper")
	mark := fmt.Sprintf("proc_sweep%d", os.Getpid())
	cmd.Env = append(cmd.Env, "SOVEREIGN_PROCESS="+mark)
	cmd.Args = append([]string{"sh", "-c", `sleep 1000 & echo $!; "$0" "$@"; echo after`, cmd.Path}, mark)
	cmd.Path = "/bin/sh"
	var pid, found int
	var after string
	fmt.Sscan(runCmd(t, cmd), &pid, &found, &after)
	if found != 1 || after != "after" || state(pid) != 0 {
		t.Errorf("found %d; %q; sleep %d in state %c", found, after, pid, state(pid))
	}
}

func init() {
	roles["marked-sweeper"] = func(s *supervisor) {
		s.host()
		found, err := s.EndMarked(s.ctx, func(m string) bool { return m == s.args[0] })
		s.check(err)
		fmt.Println(found)
		s.check(s.Close())
	}
}

// P4.5: where the time to end a leftover is up after one look, what was stopped to be
// killed is killed all the same. Return from end before killAll and this fails: it stays
// stopped, for as long as nobody tries again.
func TestEndMarked_WhoseTimeIsUp(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("proc_late%d", os.Getpid())
	sleep := exec.Command("sleep", "1000")
	sleep.Env = append(os.Environ(), "SOVEREIGN_PROCESS="+mark)
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	run(t, "late-sweeper", mark)
	waitDead(t, sleep.Process.Pid)
}

func init() {
	roles["late-sweeper"] = func(s *supervisor) {
		s.host()
		up, cancel := context.WithCancel(s.ctx)
		cancel()
		if found, err := s.EndMarked(up, func(m string) bool { return m == s.args[0] }); found != 1 || !errors.Is(err, context.Canceled) {
			s.fail("found %d, %v", found, err)
		}
		s.check(s.Close())
	}
}

// Exec passes the children on, and so does the program that it has executed, twice:
// they live, keep their numbers, and their exits are seen by the last program with the
// right status, and one that was reaped before is not mistaken for somebody else. Have
// another thread execute, or in the later programs another than the main one make the
// children, and their parent-death signal kills them.
func TestExec_PassesChildrenOn(t *testing.T) {
	t.Parallel()
	eachTree(t, "exec")
}

type passed struct {
	process.Handed
	Turn     int     // how often it has been executed
	Cgroup   string  // "" = the children have none
	Gate     uintptr // what the children read from
	GateKept uintptr // while this is open, they wait
}

// passOn starts a child that ends with status 40 + the turn, and executes the test
// binary anew.
func (s *supervisor) passOn(state passed, ps []*process.Process) {
	start := func(n int, script string) *process.Process {
		spec := sh(script, "")
		if state.Cgroup != "" {
			spec.Cgroup = fmt.Sprintf("leaf%d", n)
		}
		spec.Mark += fmt.Sprint("_", n)
		spec.Env = []string{"PATH=" + os.Getenv("PATH"), "SOVEREIGN_PROCESS=" + spec.Mark}
		gate, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", state.Gate))
		s.check(err)
		defer gate.Close()
		spec.Stdin = gate
		return s.start(spec)
	}
	if state.Turn == 0 {
		p := start(99, "exit 42") // ends, and is reaped, before
		<-p.Exited()
		s.check(p.KillTree(s.ctx))
		ps = append(ps, p)
	}
	ps = append(ps, start(state.Turn, fmt.Sprintf("read x; setsid sleep 1000 & exit %d", 40+state.Turn)))
	state.Handed = s.Pause()
	for _, p := range ps {
		state.Children = append(state.Children, p.Inherited())
	}
	state.Turn++
	b, err := json.Marshal(state)
	s.check(err)
	exe, err := os.Executable()
	s.check(err)
	keep := []uintptr{state.Gate, state.GateKept}
	if err := s.Exec(exe+"-missing", []string{"x"}, nil, keep); !errors.Is(err, syscall.ENOENT) {
		s.fail("Exec of a missing program: %v", err)
	}
	s.check(s.Exec(exe, []string{exe, string(b)}, append(os.Environ(), roleVariable+"=executed"), keep))
}

func init() {
	roles["exec"] = func(s *supervisor) {
		s.host()
		var fds [2]int
		s.check(syscall.Pipe(fds[:]))
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
		}
		s.passOn(passed{Cgroup: s.args[0], Gate: uintptr(fds[0]), GateKept: uintptr(fds[1])}, nil)
	}
	roles["executed"] = func(s *supervisor) {
		var state passed
		s.check(json.Unmarshal([]byte(s.args[0]), &state))
		h, ps, err := process.Inherit(slog.New(slog.NewTextHandler(os.Stderr, nil)), s.main, state.Handed)
		s.check(err)
		s.Host = h
		if got := ps[0].Exit(); got.Code != 42 || !ps[0].TreeGone() {
			s.fail("the child that ended before: %v", got)
		}
		for _, p := range ps[1:] {
			if c := p.Exit(); !c.At.IsZero() {
				s.fail("died over exec %d: %v", state.Turn, c)
			}
		}
		if state.Turn < 3 {
			s.passOn(state, ps)
		}
		s.check(syscall.Close(int(state.GateKept))) // EOF: they go on
		for i, p := range ps[1:] {
			<-p.Exited()
			if got := p.Exit().Code; got != 40+i {
				s.fail("status %d, want %d", got, 40+i)
			}
			if p.TreeGone() {
				s.fail("the sleep is not seen")
			}
			s.check(p.KillTree(s.ctx))
		}
		s.startsAgain("/bin/true")
		s.check(s.Close())
		if len(children()) != 0 {
			s.fail("children left: %v", children())
		}
	}
}
