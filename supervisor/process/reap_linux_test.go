package process_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// E2, E3: every child's status is the right one while hundreds of orphans are
// reaped, children of package os keep theirs, and no zombie is left. Reap with
// wait4(-1) and this fails.
func TestReaper_TakesWhatIsOursAndNoMore(t *testing.T) {
	t.Parallel()
	run(t, "statuses")
}

// E3: so it is as PID 1, to which every orphan of the namespace comes.
func TestReaper_AsPID1(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cmd := command(t, "statuses", "mount-proc")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if err := exec.Command("unshare", "-pfm", "true").Run(); err != nil {
		t.Skipf("no pid namespaces here: %v", err)
	}
	runCmd(t, cmd)
}

func init() {
	roles["statuses"] = func(s *supervisor) {
		if len(s.args) > 0 {
			s.check(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
			s.check(unix.Mount("proc", "/proc", "proc", 0, ""))
		}
		s.host()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				p := s.start(sh(fmt.Sprintf("setsid sh -c 'exit 3' & (sh -c 'exit 4' &) ; exit %d", i+10), ""))
				<-p.Exited()
				if got := p.Exit().Code; got != i+10 {
					s.fail("status %d, want %d", got, i+10)
				}
				s.check(p.WaitTree(s.ctx))
			})
		}
		for i := range 10 {
			wg.Go(func() {
				for n := range 2 {
					cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("(sleep 0.01 &) ; exit %d", i+100))
					cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: n%2 == 0}
					err := cmd.Run()
					if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != i+100 {
						s.fail("package os got %v, want %d", err, i+100)
					}
				}
			})
		}
		wg.Wait()
		s.untilNoChildren()
		s.check(s.Close())
	}
}

// untilNoChildren waits until the last orphan has come and was taken.
func (s *supervisor) untilNoChildren() {
	for deadline := time.Now().Add(limit / 2); len(children()) > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.fail("children left: %v", children())
		}
	}
}

// E1: threads come and go, and no child dies of that. Fork on the caller's
// thread and this fails.
func TestStart_ThreadsThatEndKillNobody(t *testing.T) {
	t.Parallel()
	run(t, "thread-churn")
}

func init() {
	roles["thread-churn"] = func(s *supervisor) {
		s.host()
		var mu sync.Mutex
		var ps []*process.Process
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				runtime.LockOSThread() // the thread ends with the goroutine
				p := s.start(process.Spec{Argv: []string{"sleep", "1000"}, Umask: -1})
				mu.Lock()
				defer mu.Unlock()
				ps = append(ps, p)
			})
		}
		wg.Wait()
		for range 200 {
			wg.Go(func() { runtime.LockOSThread() })
		}
		wg.Wait()
		s.start(process.Spec{Argv: []string{"true"}, Umask: -1}) // the thread that forks still works
		for _, p := range ps {
			if c := state(p.PID()); c == 0 {
				s.fail("%d died: %v", p.PID(), p.Exit())
			}
		}
		s.check(s.Close())
		for _, p := range ps {
			if p.Exit().Signal != syscall.SIGKILL {
				s.fail("after Close: %v", p.Exit())
			}
		}
	}
}

// A thousand idle children cost no thread and no goroutine each.
func TestStart_AThousandChildrenAreCheap(t *testing.T) {
	run(t, "thousand")
}

func init() {
	roles["thousand"] = func(s *supervisor) {
		s.host()
		before := goroutines()
		var ps []*process.Process
		for i := range 1000 {
			ps = append(ps, s.start(process.Spec{Argv: []string{"/bin/sleep", "1000"}, Umask: -1, Cgroup: fmt.Sprintf("c%d", i)}))
		}
		if n := goroutines(); n > before+1 {
			s.fail("%d goroutines, then %d", before, n)
		}
		b := s.status()
		var threads, rss int
		fmt.Sscan(field(b, "Threads"), &threads)
		fmt.Sscan(strings.TrimSuffix(field(b, "VmRSS"), " kB"), &rss)
		most := 20 + 2*runtime.GOMAXPROCS(0) // the runtime's own, of which each processor has some
		if threads > most || rss > 20<<10 && !raceEnabled {
			s.fail("%d threads, %d kB", threads, rss)
		}
		s.check(s.Close())
		for _, p := range ps {
			if p.Exit().Signal != syscall.SIGKILL {
				s.fail("%v", p.Exit())
			}
		}
	}
}
