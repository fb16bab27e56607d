package process_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// C1: the leader obeys SIGTERM, a member of its group does not. Without the kill
// of the whole tree this leaves the sleep.
func TestKillTree_EndsAMemberThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	eachTree(t, "stubborn-member")
}

func init() {
	roles["stubborn-member"] = func(s *supervisor) {
		s.host()
		p, lines := s.startLines(sh(`trap "" TERM; sleep 1000 & echo $!; trap "exit 0" TERM; echo ready; while :; do wait; done`, s.args[0]), 2)
		member := s.pids(lines[:1])[0]
		s.check(p.Stop(syscall.SIGTERM))
		<-p.Exited()
		if e := p.Exit(); !e.Success() {
			s.fail("the leader ended with %v", e)
		}
		if p.TreeGone() {
			s.fail("the tree counts as gone with a living member")
		}
		short, cancel := context.WithTimeout(s.ctx, time.Millisecond)
		defer cancel()
		if err := p.WaitTree(short); err != context.DeadlineExceeded {
			s.fail("WaitTree: %v", err)
		}
		s.check(p.KillTree(s.ctx))
		if state(member) != 0 {
			s.fail("member %d lives", member)
		}
		s.check(s.Close())
	}
}

// A tree that leaves its session, is stopped, or forks all the time is ended
// whole, while its leader lives and after it. Remove the walk to orphans, or the
// stop before the kill, and this fails.
func TestKillTree_EndsWhatHides(t *testing.T) {
	t.Parallel()
	for _, leader := range []string{"sleep 1000", "exit 3"} {
		t.Run(leader, func(t *testing.T) {
			t.Parallel()
			eachTree(t, "hiding-tree", leader)
		})
	}
}

const hidingTree = `
setsid sh -c 'setsid sleep 1000 & echo $! $$; exec sleep 1000' &
setsid sh -c '(sleep 1000 & echo $!) ; kill -STOP $$' &
sh -c 'kill -STOP $$' & echo $!
setsid sh -c 'echo $$; while :; do sleep 0.01 & done' &
`

func init() {
	roles["hiding-tree"] = func(s *supervisor) {
		s.host()
		p, lines := s.startLines(sh(hidingTree+s.args[1], s.args[0]), 4)
		if s.args[1] != "sleep 1000" {
			<-p.Exited()
			if got := p.Exit().Code; got != 3 {
				s.fail("exit %d", got)
			}
		}
		s.check(p.KillTree(s.ctx))
		for _, pid := range append(s.pids(lines), p.PID()) {
			if c := state(pid); c != 0 {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				e, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				s.fail("%d of %q is in state %c: %s %q; our children are %v; the leader is %d, gone %v", pid, lines, c, b, e, children(), p.PID(), p.TreeGone())
			}
		}
		if !p.TreeGone() {
			s.fail("not gone")
		}
		s.check(p.KillTree(s.ctx)) // again: no error
		s.check(s.Close())
	}
}

// One tree's end leaves the neighbours alone, though all their orphans hang from
// the same subreaper.
func TestKillTree_SparesTheNeighbours(t *testing.T) {
	t.Parallel()
	run(t, "neighbours")
}

func init() {
	roles["neighbours"] = func(s *supervisor) {
		s.host()
		spec := func(i int) process.Spec {
			sp := sh(`setsid sleep 1000 & echo $!; sleep 1000 & echo $!; exit 0`, "")
			sp.Mark = fmt.Sprintf("proc_%d_%d", os.Getpid(), i)
			sp.Env = []string{"PATH=" + os.Getenv("PATH"), "SOVEREIGN_PROCESS=" + sp.Mark}
			return sp
		}
		a, inA := s.startLines(spec(1), 2)
		b, inB := s.startLines(spec(2), 2)
		<-a.Exited()
		<-b.Exited()
		s.check(a.KillTree(s.ctx))
		for _, pid := range s.pids(inA) {
			if state(pid) != 0 {
				s.fail("%d of the ended tree lives", pid)
			}
		}
		for _, pid := range s.pids(inB) {
			if state(pid) == 0 {
				s.fail("%d of the neighbour was killed", pid)
			}
		}
		if b.TreeGone() {
			s.fail("the neighbour counts as gone")
		}
		s.check(s.Close())
		for _, pid := range s.pids(inB) {
			if state(pid) != 0 {
				s.fail("%d outlived Close", pid)
			}
		}
	}
}

// D1: the exit of the leader is seen while a grandchild holds its pipes open. Wait for
// their end, and this hangs.
func TestExited_DoesNotWaitForPipes(t *testing.T) {
	t.Parallel()
	eachTree(t, "held-pipes")
}

func init() {
	roles["held-pipes"] = func(s *supervisor) {
		s.host()
		r, w, err := os.Pipe()
		s.check(err)
		spec := sh(`sleep 1000 & echo hi`, s.args[0])
		spec.Stdout, spec.Stderr = w, w
		p := s.start(spec)
		w.Close()
		buf := make([]byte, 3)
		_, err = r.Read(buf) // from here on the leader is about to end
		s.check(err)
		<-p.Exited()
		s.check(p.KillTree(s.ctx))
		rest, err := readAll(r) // ends, as the grandchild is dead
		s.check(err)
		if rest != "" {
			s.fail("rest %q", rest)
		}
		s.check(s.Close())
	}
}

// Stop continues a stopped process, so that it can obey; Signal does not.
func TestStop_WakesAStoppedProcess(t *testing.T) {
	t.Parallel()
	eachTree(t, "stopped")
}

func init() {
	roles["stopped"] = func(s *supervisor) {
		s.host()
		// It starts nothing: a shell that is stopped while it waits for its vfork is in
		// another state.
		p, _ := s.startLines(sh(`trap "exit 5" TERM; echo ready; while :; do :; done`, s.args[0]), 1)
		s.check(p.Signal(syscall.SIGSTOP))
		s.check(p.Signal(syscall.SIGTERM))
		waitState(p.PID(), 'T')
		select {
		case <-p.Exited():
			s.fail("a stopped process obeyed")
		default:
		}
		s.check(p.Stop(syscall.SIGTERM))
		<-p.Exited()
		if got := p.Exit(); got.Code != 5 {
			s.fail("%v", got)
		}
		s.check(p.Signal(syscall.SIGTERM)) // nobody left: no error
		s.check(s.Close())
	}
}

// waitState waits for a state by looking again and again; only for tests of
// states that the kernel does not report.
func waitState(pid int, want byte) {
	for state(pid) != want {
	}
}

// An exit tells code, signal and success apart.
func TestExit_SaysHow(t *testing.T) {
	t.Parallel()
	run(t, "exits")
}

func init() {
	roles["exits"] = func(s *supervisor) {
		s.host()
		for script, want := range map[string]string{
			"exit 0": "exit status 0", "exit 75": "exit status 75", "kill -9 $$": "killed by SIGKILL",
			"ulimit -c 0; kill -SEGV $$": "killed by SIGSEGV",
		} {
			p := s.start(sh(script, ""))
			if got := p.Exit(); script != "exit 0" && got.At.IsZero() && got.String() != "running" {
				s.fail("%v before the exit", got)
			}
			<-p.Exited()
			e := p.Exit()
			if e.String() != want || e.Success() != (script == "exit 0") || e.At.IsZero() {
				s.fail("%s: %v", script, e)
			}
			s.check(p.KillTree(s.ctx))
		}
		s.check(s.Close())
	}
}

// D5: restarts leave no descriptor, goroutine or zombie behind.
func TestStart_RestartsLeaveNothing(t *testing.T) {
	t.Parallel()
	eachTree(t, "restarts")
}

func init() {
	roles["restarts"] = func(s *supervisor) {
		s.host()
		once := func() {
			p := s.start(process.Spec{Argv: []string{"/bin/false"}, Umask: -1, Cgroup: s.args[0], Mark: "proc_x"})
			<-p.Exited()
			if p.Exit().Code != 1 {
				s.fail("%v", p.Exit())
			}
			s.check(p.KillTree(s.ctx))
		}
		once()
		before := count(s)
		for range 300 {
			once()
		}
		if after := count(s); after != before {
			s.fail("before %s, after %s", before, after)
		}
		s.check(s.Close())
	}
}

// count describes what must not grow.
func count(s *supervisor) string {
	fds, err := os.ReadDir("/proc/self/fd")
	s.check(err)
	return fmt.Sprintf("fds=%d goroutines=%d children=%d", len(fds), goroutines(), len(children()))
}

// A leaf that was killed serves its name no more: Linux from 6.14 would kill the
// next child in it before its first instruction.
func TestStart_UnderANameThatWasKilled(t *testing.T) {
	t.Parallel()
	eachTree(t, "killed-name")
}

func init() {
	roles["killed-name"] = func(s *supervisor) {
		s.host()
		for range 3 {
			p, _ := s.startLines(sh("echo ready; exec sleep 1000", s.args[0]), 1)
			s.check(p.KillTree(s.ctx))
			if got := p.Exit().Signal; got != syscall.SIGKILL {
				s.fail("%v", p.Exit())
			}
		}
		s.check(s.Close())
	}
}

// Who belongs to a tree is known for each process of it, however it has hidden, and
// for no other: its parent, a process of another tree, one that has ended.
func TestOwns(t *testing.T) {
	t.Parallel()
	eachTree(t, "owns")
}

func init() {
	roles["owns"] = func(s *supervisor) {
		s.host()
		p, lines := s.startLines(sh(hidingTree+"sleep 1000", s.args[0]), 4)
		for _, pid := range append(s.pids(lines), p.PID()) {
			if owns, known := p.Owns(pid); !owns || !known {
				s.fail("process %d of the tree: owned %v, known %v", pid, owns, known)
			}
		}
		for _, pid := range []int{1, os.Getpid()} {
			if owns, known := p.Owns(pid); owns || !known {
				s.fail("process %d of no tree: owned %v, known %v", pid, owns, known)
			}
		}
		s.check(p.KillTree(s.ctx))
		if owns, known := p.Owns(p.PID()); owns || known {
			s.fail("a process that has ended: owned %v, known %v", owns, known)
		}
		s.check(s.Close())
	}
}
