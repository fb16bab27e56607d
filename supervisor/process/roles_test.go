package process_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A Host changes the whole program: subreaper, close-on-exec, signals. So every
// test supervisor is the test binary, executed again in a role.
const roleVariable = "PROCESS_TEST_ROLE"

// roles are what the test binary can be instead of a test.
var roles = map[string]func(*supervisor){}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		play(name)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// limit bounds whatever a test waits for: what hangs is to fail, and what is slow on a
// machine that is busy with other things is not.
const limit = 5 * time.Minute

func play(name string) {
	os.Unsetenv(roleVariable)
	s := &supervisor{ctx: context.Background(), args: os.Args[1:]}
	time.AfterFunc(limit, func() { panic("the role " + name + " hangs") })
	if name != executed {
		roles[name](s)
		return
	}
	s.main = process.NewThread()
	go func() {
		roles[name](s)
		os.Exit(0)
	}()
	s.main.Serve()
}

// executed is the role of a program that Exec has put in place.
const executed = "executed"

func init() {
	if os.Getenv(roleVariable) == executed {
		runtime.LockOSThread()
	}
}

// A supervisor is a program in a role. Its methods end the program, with status 1,
// when something is not as it must be.
type supervisor struct {
	*process.Host
	ctx  context.Context
	args []string
	main *process.Thread // of a program that was executed
}

func (s *supervisor) check(err error) {
	if err != nil {
		s.fail("%v", err)
	}
}

func (s *supervisor) fail(format string, a ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
	os.Stderr.Write(debug.Stack())
	os.Exit(1)
}

// host makes the Host; the log goes to stderr.
func (s *supervisor) host() {
	h, err := process.NewHost(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	s.check(err)
	s.Host = h
}

// sh is a Spec of a shell script, found by mark and, where cgroup is not empty,
// kept in that leaf.
func sh(script, cgroup string) process.Spec {
	return process.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Umask: -1, Cgroup: cgroup,
		Mark: "proc_test" + strconv.Itoa(os.Getpid()),
		Env:  []string{"PATH=" + os.Getenv("PATH"), "SOVEREIGN_PROCESS=proc_test" + strconv.Itoa(os.Getpid())},
	}
}

func (s *supervisor) start(spec process.Spec) *process.Process {
	p, err := s.Start(s.ctx, spec)
	s.check(err)
	return p
}

// startLines starts spec and reads n lines of its stdout.
func (s *supervisor) startLines(spec process.Spec, n int) (*process.Process, []string) {
	r, w, err := os.Pipe()
	s.check(err)
	defer r.Close()
	spec.Stdout = w
	p := s.start(spec)
	w.Close()
	lines := bufio.NewScanner(r)
	var got []string
	for len(got) < n && lines.Scan() {
		got = append(got, lines.Text())
	}
	if len(got) != n {
		s.fail("%d lines of output, want %d: %q", len(got), n, got)
	}
	return p, got
}

// output runs spec to its end and returns what it wrote.
func (s *supervisor) output(spec process.Spec) string {
	r, w, err := os.Pipe()
	s.check(err)
	defer r.Close()
	spec.Stdout, spec.Stderr = w, w
	p := s.start(spec)
	w.Close()
	var b strings.Builder
	_, err = bufio.NewReader(r).WriteTo(&b)
	s.check(err)
	<-p.Exited()
	s.check(p.KillTree(s.ctx))
	return b.String()
}

// pids are numbers in lines.
func (s *supervisor) pids(lines []string) []int {
	var out []int
	for _, l := range lines {
		for _, f := range strings.Fields(l) {
			n, err := strconv.Atoi(f)
			s.check(err)
			out = append(out, n)
		}
	}
	return out
}

// state is the state letter of a process, 0 = there is none. A zombie that PID 1
// has not taken yet is dead all the same.
func state(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+2:])
	if rest[0] == 'Z' || rest[0] == 'X' {
		return 0
	}
	return rest[0]
}

// run plays a role in a program of its own and returns its stdout.
func run(t *testing.T, role string, args ...string) string {
	t.Helper()
	return runCmd(t, command(t, role, args...))
}

func command(t *testing.T, role string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit+10*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.WaitDelay = time.Minute // what a role leaves behind in its pipes
	return cmd
}

// begin starts cmd and returns what it prints.
func begin(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(out)
}

func runCmd(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	return out.String()
}

// eachTree runs a role once with the tree in a cgroup and once without.
func eachTree(t *testing.T, role string, args ...string) {
	for _, cgroup := range []string{"leaf", ""} {
		name := "cgroup"
		if cgroup == "" {
			name = "walk"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if cgroup != "" {
				needCgroup(t)
			}
			run(t, role, append([]string{cgroup}, args...)...)
		})
	}
}

// needCgroup skips only where the machine cannot do it; the tests of the walk
// run everywhere.
func needCgroup(t *testing.T) {
	t.Helper()
	if out := run(t, "cgroups?"); out != "true\n" {
		t.Skip("cgroup v2 is not writable here")
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func init() {
	roles["cgroups?"] = func(s *supervisor) {
		s.host()
		fmt.Println(s.Cgroups())
		s.check(s.Close())
	}
}
