package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

func (s *supervisor) status() string {
	b, err := os.ReadFile("/proc/self/status")
	s.check(err)
	return string(b)
}

// H4: only 0 to 2, and 3 where given, reach a child, whatever the supervisor
// was started with.
func TestStart_PassesNoOtherDescriptor(t *testing.T) {
	t.Parallel()
	held, err := os.CreateTemp(t.TempDir(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd := command(t, "descriptors")
	for range 7 { // 3 to 9, as in: sovereign run 9>lock
		cmd.ExtraFiles = append(cmd.ExtraFiles, held)
	}
	runCmd(t, cmd)
}

func init() {
	roles["descriptors"] = func(s *supervisor) {
		s.host()
		r, w, err := os.Pipe()
		s.check(err)
		defer r.Close()
		list := sh("exec ls -l /proc/self/fd", "")
		out := s.output(list)
		if n := descriptors(out); n != 4 || !strings.Contains(out, "0 -> /dev/null") { // 0, 1, 2, and ls's own folder
			s.fail("%s", out)
		}
		list.Channel = w
		list.Argv[2] = "ls -l /proc/$$/fd; echo through >&3"
		out = s.output(list)
		w.Close()
		if n := descriptors(out); n != 4 || !strings.Contains(out, " 3 -> pipe:") {
			s.fail("%s", out)
		}
		if got, err := readAll(r); err != nil || got != "through\n" {
			s.fail("%q, %v", got, err)
		}
		s.check(s.Close())
	}
}

func descriptors(ls string) int { return strings.Count(ls, " -> ") }

// L2, C9: a child leads a session without terminal, with empty signal mask and
// default dispositions, though the supervisor was started under nohup and with
// signals blocked.
func TestStart_GivesACleanSession(t *testing.T) {
	t.Parallel()
	cmd := command(t, "clean-session")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP PIPE USR1 TTOU CHLD; exec "$0"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	runCmd(t, cmd)
}

func init() {
	roles["clean-session"] = func(s *supervisor) {
		s.host()
		st := s.output(process.Spec{Argv: []string{"cat", "/proc/self/status", "/proc/self/stat"}, Umask: -1})
		for _, mask := range []string{"SigBlk", "SigIgn"} {
			if strings.Trim(field(st, mask), "0") != "" {
				s.fail("%s: %s", mask, field(st, mask))
			}
		}
		f := strings.Fields(st[strings.LastIndexByte(st, ')')+1:])
		if pid := field(st, "Pid"); f[2] != pid || f[3] != pid || f[4] != "0" {
			s.fail("pid %s: group %s, session %s, terminal %s", pid, f[2], f[3], f[4])
		}
		s.check(s.Close())
	}
}

// The umask of one child is not another's, nor the supervisor's.
func TestStart_UmaskIsTheChildsOwn(t *testing.T) {
	t.Parallel()
	run(t, "umasks", t.TempDir())
}

func init() {
	roles["umasks"] = func(s *supervisor) {
		unix.Umask(0o027)
		s.host()
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				spec := sh("umask", "")
				want := "0027\n"
				if i%2 == 0 {
					spec.Umask, want = 0o077-i, fmt.Sprintf("%04o\n", 0o077-i)
				}
				if got := s.output(spec); got != want {
					s.fail("%q, want %q", got, want)
				}
			})
			wg.Go(func() {
				path := filepath.Join(s.args[0], fmt.Sprint(i))
				s.check(os.WriteFile(path, nil, 0o666))
				info, err := os.Stat(path)
				s.check(err)
				if info.Mode() != 0o640 {
					s.fail("own file has mode %v", info.Mode())
				}
			})
		}
		wg.Wait()
		s.check(s.Close())
	}
}

// H2: the supervisor's own limit of open files is high, a child has the one
// that the supervisor was started with, or its own, from its first instruction.
func TestStart_LimitsOpenFiles(t *testing.T) {
	t.Parallel()
	cmd := command(t, "open-files")
	cmd.Args = append([]string{"sh", "-c", `ulimit -Sn 123; exec "$0"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	runCmd(t, cmd)
}

func init() {
	roles["open-files"] = func(s *supervisor) {
		s.host()
		var own unix.Rlimit
		s.check(unix.Getrlimit(unix.RLIMIT_NOFILE, &own))
		if own.Cur < own.Max-1 {
			s.fail("own limit %d of %d", own.Cur, own.Max)
		}
		if got := s.output(sh("ulimit -Sn", "")); got != "123\n" {
			s.fail("inherited %q", got)
		}
		for _, cgroup := range []string{"", "leaf"} {
			for range 50 {
				spec := sh("ulimit -Sn; ulimit -Hn; exit 9", cgroup)
				spec.NoFile = 77
				if got := s.output(spec); got != "77\n77\n" {
					s.fail("given %q", got)
				}
			}
		}
		spec := sh("exit 9", "")
		spec.NoFile = 64
		p := s.start(spec)
		<-p.Exited()
		if p.Exit().Code != 9 {
			s.fail("%v", p.Exit())
		}
		s.check(s.Close())
	}
}

// H2: a supervisor that raises its limit beyond what it was started with keeps that from
// its children, and passes on what they are to have. (Beyond the hard limit it takes a
// privilege, which a test has not everywhere; what follows from it is the same.) Take what
// Go's runtime has made of a soft limit for the one that was given, and this fails.
func TestRaiseFiles_ChildrenKeepTheirs(t *testing.T) {
	t.Parallel()
	run(t, "raise-files")
}

func init() {
	roles["raise-files"] = func(s *supervisor) {
		s.check(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 400}))
		s.host()
		raiseFiles(s, 200, 300)
		s.check(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 400}))
		// The next image finds the soft limit below the hard one, and Go raises it.
		s.check(syscall.Exec("/proc/self/exe", os.Args[:1], append(os.Environ(), roleVariable+"=raise-files-raised")))
	}
	roles["raise-files-raised"] = func(s *supervisor) {
		s.host()
		raiseFiles(s, 399, 400)
	}
}

// raiseFiles raises the limit from what is had to more, of a program that was given 200
// of 400.
func raiseFiles(s *supervisor, had, more uint64) {
	limit, err := s.RaiseFiles(100)
	if err != nil || limit != had {
		s.fail("it is %d, %v", limit, err)
	}
	limit, err = s.RaiseFiles(more)
	if err != nil || limit != more {
		s.fail("it is %d, %v", limit, err)
	}
	var own unix.Rlimit
	s.check(unix.Getrlimit(unix.RLIMIT_NOFILE, &own))
	if own.Cur != more {
		s.fail("own limit %d", own.Cur)
	}
	for _, cgroup := range []string{"", "leaf"} {
		if got := s.output(sh("ulimit -Sn; ulimit -Hn; exit 9", cgroup)); got != "200\n400\n" {
			s.fail("a child has %q", got)
		}
	}
	spec := sh("ulimit -Sn; exit 9", "")
	spec.NoFile = 77
	if got := s.output(spec); got != "77\n" {
		s.fail("given %q", got)
	}
	if got := s.Pause().Files; got == nil || *got != (process.FileLimit{Soft: 200, Hard: 400}) {
		s.fail("passed on %v", got)
	}
	s.Resume()
	s.check(s.Close())
}

// L7: after a switch of user, id and environment are that user's, the pipes can
// be opened again, and the tree can still be killed.
func TestStart_AsAnotherUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	run(t, "nobody")
}

func init() {
	roles["nobody"] = func(s *supervisor) {
		s.host()
		c, env, err := process.LookupUser("nobody", "")
		s.check(err)
		spec := sh("id -u; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; echo again > /dev/stderr; pwd; setsid sleep 1000 &", "")
		spec.Credential, spec.Dir = &c, "/"
		spec.Env = append(spec.Env, env...)
		out, err := exec.Command("/bin/sh", "-c", "id -u nobody; id -g nobody; id -G nobody; getent passwd nobody").Output()
		s.check(err)
		line := strings.SplitN(string(out), "\n", 4)
		f := strings.Split(strings.TrimSpace(line[3]), ":")
		want := line[0] + "\n" + line[1] + "\n" + line[2] + "\n" + f[5] + " nobody nobody " + f[6] + "\nagain\n/\n"
		r, w, err := os.Pipe()
		s.check(err)
		spec.Stdout, spec.Stderr = w, w
		p := s.start(spec)
		w.Close()
		<-p.Exited()
		s.check(p.KillTree(s.ctx))
		if got, err := readAll(r); err != nil || got != want {
			s.fail("%q, want %q, %v", got, want, err)
		}
		if c.UID == 0 || c.GID == 0 || len(c.Groups) == 0 {
			s.fail("%+v", c)
		}
		s.check(s.Close())
	}
}

// Users and groups can be numbers; unknown names are errors.
func TestLookupUser(t *testing.T) {
	t.Parallel()
	c, env, err := process.LookupUser("0", "4242")
	if err != nil || c.UID != 0 || c.GID != 4242 || env[1] != "USER=root" {
		t.Errorf("%+v %v %v", c, env, err)
	}
	if c, _, err := process.LookupUser("424242", "4242"); err != nil || c.UID != 424242 || len(c.Groups) != 1 || c.Groups[0] != 4242 {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range [][2]string{{"no-such-user", ""}, {"root", "no-such-group"}, {"424242", ""}} {
		if c, _, err := process.LookupUser(bad[0], bad[1]); err == nil {
			t.Errorf("%v is %+v", bad, c)
		}
	}
}

// Whatever prevents a start is said so that a person can repair it, leaves no
// child behind, and keeps its errno for programs.
func TestStart_SaysWhyNot(t *testing.T) {
	t.Parallel()
	run(t, "why-not", t.TempDir())
}

func init() {
	roles["why-not"] = func(s *supervisor) {
		dir := s.args[0]
		file := func(name, content string, mode os.FileMode) string {
			path := filepath.Join(dir, name)
			s.check(os.WriteFile(path, []byte(content), mode))
			return path
		}
		s.host()
		plain := file("plain", "#!/bin/sh\n", 0o644)
		busy, err := os.OpenFile(file("busy", "", 0o755), os.O_WRONLY, 0)
		s.check(err)
		program, err := os.ReadFile("/bin/true")
		s.check(err)
		_, err = busy.Write(program)
		s.check(err)
		for _, c := range []struct {
			argv  []string
			dir   string
			errno syscall.Errno
			says  string
		}{
			{[]string{dir + "/none"}, "", syscall.ENOENT, "spawn failed: ENOENT: " + dir + "/none: no such file"},
			{[]string{"./none"}, dir, syscall.ENOENT, dir + "/none: no such file"},
			{[]string{"no-such-command"}, "", syscall.ENOENT, "no-such-command: not found in PATH"},
			{[]string{file("python", "#!/usr/bin/pyton\n", 0o755)}, "", syscall.ENOENT, "its interpreter /usr/bin/pyton does not exist"},
			{[]string{file("dos", "#!/bin/sh\r\n", 0o755)}, "", syscall.ENOENT, "carriage return"},
			{[]string{file("none-named", "echo hi\n", 0o755)}, "", syscall.ENOEXEC, "does not name an interpreter"},
			{[]string{file("empty", "", 0o755)}, "", syscall.ENOEXEC, "does not name an interpreter"},
			{[]string{plain}, "", syscall.EACCES, plain + ": not executable"},
			{[]string{dir}, "", syscall.EACCES, "is a directory"},
			{[]string{"/bin/true"}, dir + "/nowhere", syscall.ENOENT, dir + "/nowhere: no such directory to run in"},
			{[]string{"/bin/true"}, plain, syscall.ENOTDIR, "is no directory to run in"},
			{[]string{"/bin/true", strings.Repeat("x", 200_000)}, "", syscall.E2BIG, "too long"},
			{[]string{busy.Name()}, "", syscall.ETXTBSY, "open for writing"},
			{nil, "", 0, "the command is empty"},
			{[]string{"/bin/true", "a\x00b"}, "", syscall.EINVAL, "/bin/true"},
		} {
			for _, nofile := range []uint64{0, 100} {
				p, err := s.Start(s.ctx, process.Spec{Argv: c.argv, Dir: c.dir, Umask: -1, Cgroup: "leaf", NoFile: nofile})
				se, ok := errors.AsType[*process.StartError](err)
				if !ok || p != nil || se.Errno != c.errno || !strings.Contains(se.Error(), c.says) {
					s.fail("%q in %q: %v", c.argv, c.dir, err)
				}
				if c.errno != 0 && !errors.Is(err, c.errno) {
					s.fail("%v is not %v", err, c.errno)
				}
			}
		}
		// More than root may set: fs.nr_open is smaller.
		_, err = s.Start(s.ctx, process.Spec{Argv: []string{"/bin/true"}, Umask: -1, NoFile: 1 << 40})
		if !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "its limit of open files is to be 1099511627776") {
			s.fail("with more descriptors than anybody may have: %v", err)
		}
		s.check(busy.Close())
		s.startsAgain(busy.Name())

		// The program is out of descriptors: a child is made on a thread that has its
		// own. With none there either: said so, temporary, and over when there are some.
		var old unix.Rlimit
		s.check(unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
		s.check(syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: old.Max}))
		var held []*os.File
		for {
			f, err := os.Open("/dev/null")
			if err != nil {
				break
			}
			held = append(held, f)
		}
		made := s.start(process.Spec{Argv: []string{"/bin/true"}, Umask: -1})
		<-made.Exited()
		s.check(syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 4, Max: old.Max}))
		_, err = s.Start(s.ctx, process.Spec{Argv: []string{"/bin/true"}, Umask: -1})
		se, ok := errors.AsType[*process.StartError](err)
		if !ok || se.Errno != syscall.EMFILE || !se.Temporary() {
			s.fail("without descriptors: %v", err)
		}
		s.check(syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: old.Max}))
		for _, f := range held {
			f.Close()
		}
		s.check(made.KillTree(s.ctx))
		s.startsAgain("/bin/true")
		if len(children()) != 0 {
			s.fail("children left: %v", children())
		}
		s.check(s.Close())
		if _, err := s.Start(s.ctx, process.Spec{Argv: []string{"/bin/true"}, Umask: -1}); err == nil {
			s.fail("started after Close")
		}
	}
}

func (s *supervisor) startsAgain(path string) {
	p := s.start(process.Spec{Argv: []string{path}, Umask: -1, Cgroup: "leaf"})
	<-p.Exited()
	if !p.Exit().Success() {
		s.fail("%s: %v", path, p.Exit())
	}
	s.check(p.KillTree(s.ctx))
}

// A cgroup that a service manager has removed, since it was empty, is made anew: a start
// that failed for it would fail for ever. Take the loop out of Host.start and this fails.
func TestStart_MakesARemovedCgroupAnew(t *testing.T) {
	t.Parallel()
	needCgroup(t)
	run(t, "removed cgroup")
}

func init() {
	roles["removed cgroup"] = func(s *supervisor) {
		s.host()
		for range 3 {
			p := s.start(process.Spec{Argv: []string{"/bin/true"}, Umask: -1, Cgroup: "leaf"})
			folder := p.Cgroup()
			<-p.Exited()
			s.check(p.KillTree(s.ctx))
			if err := os.Remove(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
				s.fail("remove %s: %v", folder, err)
			}
		}
		s.check(s.Close())
	}
}

// A user who has all the processes that the limit allows gets no more, is told so,
// and may try again later. (The limit is the child's, not the program's: Go's runtime
// aborts when it is refused a thread.)
func TestStart_TooManyProcesses(t *testing.T) {
	t.Parallel()
	needRoot(t)
	run(t, "too-many")
}

func init() {
	roles["too-many"] = func(s *supervisor) {
		s.host()
		as := func(argv ...string) process.Spec {
			c := process.Credential{UID: 424242, GID: 424242, Groups: []uint32{424242}}
			return process.Spec{Argv: argv, Umask: -1, Dir: "/", Credential: &c}
		}
		first := s.start(as("/bin/sleep", "1000"))
		var old unix.Rlimit
		s.check(unix.Getrlimit(unix.RLIMIT_NPROC, &old))
		s.check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 0, Max: old.Max}))
		_, err := s.Start(s.ctx, as("/bin/true"))
		se, ok := errors.AsType[*process.StartError](err)
		if !ok || se.Errno != syscall.EAGAIN || !se.Temporary() || !strings.Contains(se.Error(), "no more processes") {
			s.fail("%v", err)
		}
		s.check(unix.Setrlimit(unix.RLIMIT_NPROC, &old))
		p := s.start(as("/bin/true"))
		<-p.Exited()
		if !p.Exit().Success() {
			s.fail("once there is room: %v", p.Exit())
		}
		s.check(first.KillTree(s.ctx))
		s.check(s.Close())
	}
}

// asNobody is a role played by another user, who can write no cgroup. The test
// binary is copied to where that user can execute it.
func asNobody(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "process-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := command(t, role, args...)
	// Copied by another program: what is forked here meanwhile would hold a copy open that
	// is written here, which then could not be executed (ETXTBSY).
	path := filepath.Join(dir, "test")
	if out, err := exec.Command("cp", cmd.Path, path).CombinedOutput(); err != nil {
		t.Fatalf("copy the test binary: %v: %s", err, out)
	}
	if os.Chmod(path, 0o755) != nil || os.Chmod(dir, 0o755) != nil {
		t.Fatal("let others execute the test binary")
	}
	cmd.Path, cmd.Dir = path, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

// Without any right to cgroups everything works by the walk.
func TestKillTree_AsAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, leader := range []string{"sleep 1000", "exit 3"} {
		runCmd(t, asNobody(t, "hiding-tree", "leaf", leader))
	}
}

// Limits of memory and pids are refused, with what is missing, where there are no
// controllers, and everything else goes on.
func TestEnableLimits_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	needRoot(t)
	runCmd(t, asNobody(t, "limits"))
}

func init() {
	roles["limits"] = func(s *supervisor) {
		s.host()
		if err := s.EnableLimits(); err == nil || !strings.Contains(err.Error(), "Delegate=yes") {
			s.fail("%v", err)
		}
		_, err := s.Start(s.ctx, process.Spec{Argv: []string{"/bin/true"}, Umask: -1, Cgroup: "leaf", Pids: 5})
		if err == nil || !strings.Contains(err.Error(), "delegated cgroup") {
			s.fail("%v", err)
		}
		s.startsAgain("/bin/true")
		s.check(s.Close())
	}
}
