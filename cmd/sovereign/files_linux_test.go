package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/protocol"
)

// A fleetRun is a real supervisor of daemons under a limit of open files.
type fleetRun struct {
	t       *testing.T
	dir     string
	program string
	cmd     *exec.Cmd
	said    written
	over    chan error
}

// runFleet starts one with n daemons after the shell's command limit. It has not the
// privilege to raise a hard limit, unless it is root and privileged is set.
func runFleet(t *testing.T, n int, limit, command string, privileged bool) *fleetRun {
	t.Helper()
	f := &fleetRun{t: t, dir: t.TempDir(), over: make(chan error, 1)}
	f.declare(n, command)
	f.start(limit, privileged)
	return f
}

// declare writes what it is to run.
func (f *fleetRun) declare(n int, command string) {
	t := f.t
	t.Helper()
	f.program = linkToSelf(t)
	file := fmt.Sprintf("version: 1\nactors:\n  d:\n    mode: daemon\n    replicas: %d\n    command: %q\n", n, command)
	if err := os.WriteFile(filepath.Join(f.dir, "actors.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts it on its store.
func (f *fleetRun) start(limit string, privileged bool, more ...string) {
	t := f.t
	t.Helper()
	f.cmd = exec.Command("sh", append([]string{"-c", limit + ` && exec "$0" run actors.yaml --log-format json "$@"`, f.program}, more...)...)
	f.cmd.Dir, f.cmd.Stderr = f.dir, &f.said
	f.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=")
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as a service, it has no terminal
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: what is dropped is the thread's, which ends
		if !privileged && os.Geteuid() == 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_RESOURCE, 0, 0, 0); err != nil {
				started <- err
				return
			}
		}
		started <- f.cmd.Start()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	cmd := f.cmd
	go func() { f.over <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// ask runs a command of the program on the store.
func (f *fleetRun) ask(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(f.program, args...)
	cmd.Dir = f.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%q: %v\n%s\n%s", args, err, out, f.said.String())
	}
	return string(out)
}

// begun waits until everything has started.
func (f *fleetRun) begun() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for {
		var got struct {
			Supervisor protocol.SupervisorStatus `json:"supervisor"`
		}
		cmd := exec.CommandContext(ctx, f.program, "status", "--json")
		cmd.Dir = f.dir
		out, _ := cmd.Output()
		if json.Unmarshal(out, &got) == nil && got.Supervisor.State == "running" {
			start := exec.CommandContext(ctx, f.program, "start", "d") // it returns once they have settled
			start.Dir = f.dir
			var err error
			if out, err = start.CombinedOutput(); err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			f.t.Fatalf("it does not run: %s\n%s", out, f.said.String())
		}
	}
}

// up are the pids of n daemons, which are up.
func (f *fleetRun) up(n int) (pids []int) {
	f.t.Helper()
	var got struct {
		Actors []protocol.ActorStatus `json:"actors"`
	}
	if err := json.Unmarshal([]byte(f.ask("status", "--json")), &got); err != nil {
		f.t.Fatal(err)
	}
	for _, s := range got.Actors[0].Slots {
		if s.State == protocol.SlotUp {
			pids = append(pids, s.PID)
		}
	}
	if len(pids) != n {
		f.t.Fatalf("%d of %d are up\n%s", len(pids), n, f.said.String())
	}
	return pids
}

// logged waits until each of n logs holds text and nothing else.
func (f *fleetRun) logged(n int, text string) {
	f.t.Helper()
	limit := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for slot := 1; slot <= n; {
		b, err := os.ReadFile(filepath.Join(f.dir, ".sovereign", "logs", fmt.Sprintf("d.%d.log", slot)))
		if err == nil && string(b) == text {
			slot++
			continue
		}
		select {
		case <-tick.C:
		case <-limit:
			f.t.Fatalf("the log of slot %d holds %q, %v; want %q", slot, b, err, text)
		}
	}
}

// stop ends it by SIGTERM.
func (f *fleetRun) stop() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	if err := <-f.over; err != nil {
		f.t.Fatalf("%v\n%s", err, f.said.String())
	}
}

// H2: five hundred processes start, restart and stop under `ulimit -n 1024`, as far as
// that can be raised, and each has the limit that was given; where it cannot, a fleet that
// fits runs, and one that does not is refused with the number that it needs. Have each
// child keep a descriptor of its cgroup, or each log its files, and this fails.
func TestFiles_FleetWithinALimit(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short")
	}
	const talks = "ulimit -Sn; ulimit -Hn; exec sleep 1000"
	var hard unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &hard); err != nil || hard.Max < 2000 {
		t.Skip("the hard limit is too low", hard.Max, err)
	}
	live := func(f *fleetRun, n int, want string) {
		f.begun()
		pids := f.up(n)
		f.logged(n, want) // who is ended before it speaks says nothing
		f.ask("restart", "d")
		pids = append(pids, f.up(n)...)
		f.logged(n, want+want)
		if got := f.ask("events"); strings.Contains(got, "spawn_failed") {
			f.t.Errorf("starts failed:\n%s", f.said.String())
		}
		f.stop()
		for _, pid := range pids {
			if f.running(pid) {
				f.t.Errorf("process %d is left", pid)
			}
		}
	}
	t.Run("soft", func(t *testing.T) {
		live(runFleet(t, 500, "ulimit -Sn 1024", talks, false), 500, fmt.Sprintf("1024\n%d\n", hard.Max))
	})
	t.Run("hard, privileged", func(t *testing.T) {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); os.Geteuid() != 0 || err != nil || has == 0 {
			t.Skip("it needs root with CAP_SYS_RESOURCE")
		}
		live(runFleet(t, 500, "ulimit -n 1024", talks, true), 500, "1024\n1024\n")
	})
	t.Run("hard", func(t *testing.T) {
		live(runFleet(t, 480, "ulimit -n 1024", talks, false), 480, "1024\n1024\n")
	})
	t.Run("refused", func(t *testing.T) {
		f := runFleet(t, 500, "ulimit -n 1024", talks, false)
		<-f.over
		if got := f.cmd.ProcessState.ExitCode(); got != exitFailed {
			t.Errorf("exit status %d", got)
		}
		for _, want := range []string{"500 slots need 1064", "the limit is 1024", "ulimit -n", "LimitNOFILE="} {
			if !strings.Contains(f.said.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, f.said.String())
			}
		}
	})
}

// H2: idle connections cannot take the descriptors that processes are started with, be they
// to control.sock, to worker.sock or to read metrics: each is bounded, who finds no room is
// told so in one line, and all restart while it stands. Leave Connections out of serve, or
// guests out of serveMetrics, and this fails.
func TestFiles_IdleConnections(t *testing.T) {
	f := &fleetRun{t: t, dir: t.TempDir(), over: make(chan error, 1)}
	const replicas, limit = 20, 64 + 2*20 + 8
	f.declare(replicas, "exec sleep 1000")
	scraped := filepath.Join(f.dir, "metrics.sock")
	f.start(fmt.Sprintf("ulimit -n %d", limit), false, "--metrics", "unix:"+scraped)
	f.begun()
	crowd := func(path, refusal string, bound int) {
		t.Helper()
		for n := range 100 {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if n < bound {
				continue // it is silent, and so is the supervisor
			}
			_ = conn.SetReadDeadline(time.Now().Add(testLimit))
			said, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(said), refusal) || strings.Count(strings.TrimSpace(string(said)), "\n") > 5 {
				t.Fatalf("connection %d to %s: %q, %v; want %q", n, path, said, err, refusal)
			}
		}
	}
	// 16 and half of 8 left over, of which metrics have 5, and of the other 15 control.sock keeps 3.
	crowd(filepath.Join(f.dir, ".sovereign", "worker.sock"), "the limit of open files leaves room for 15", 12)
	crowd(scraped, "503 Service Unavailable", 5)
	f.ask("restart", "d")
	f.up(replicas)
	// Of those 3 the last command's may still be one, and leave its place a moment later.
	crowd(filepath.Join(f.dir, ".sovereign", "control.sock"), `"category":"unavailable"`, 3+1)
	f.stop()
	events := exec.Command(f.program, "events")
	events.Dir = f.dir
	if out, err := events.CombinedOutput(); err != nil || strings.Contains(string(out), "spawn_failed") {
		t.Errorf("starts failed: %v\n%s\n%s", err, out, f.said.String())
	}
	for line := range strings.Lines(f.said.String()) {
		busy := strings.Contains(line, "supervisor did not run for a while") // the machine was
		if strings.Contains(line, "too many open files") || strings.Contains(line, `"level":"WARN"`) && !busy {
			t.Errorf("it says %s", line)
		}
	}
}
