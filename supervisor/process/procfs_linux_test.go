package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program's name may hold anything; only what is behind its last parenthesis
// counts. Parse from the first and this fails.
func TestReadStat_OfAnOddName(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "a) R 1 (b")
	// By another program: what is forked here meanwhile would hold it open for writing.
	if out, err := exec.Command("cp", "/bin/sleep", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	st, err := readStat(cmd.Process.Pid)
	if err != nil || st.ppid != os.Getpid() || !st.alive() || st.start == 0 {
		t.Errorf("%+v %v", st, err)
	}
}

// A stat says how long the environment is, by which one that was read whole is told
// from one that was read in an exec; and what is a thread of the kernel. Take other
// fields and this fails.
func TestReadStat_KnowsItsEnvironment(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "echo; read line") // no exec: what says that it runs stays itself
	cmd.Env = []string{"A=" + strings.Repeat("long ", 2000), MarkVariable + "=proc_a"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	// Start returns in the middle of the exec, before the environment is in place.
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	st, err := readStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	env, err := readEnviron(st)
	if err != nil || !st.wholeIn(env) || st.wholeIn(env[:len(env)-1]) || st.executing() || st.kernel() {
		t.Errorf("%+v: %d bytes, %v", st, len(env), err)
	}
	if mark, ok, err := markOf(st); mark != "proc_a" || !ok || err != nil {
		t.Errorf("%q %t %v", mark, ok, err)
	}
	if (stat{}).wholeIn(nil) || !(stat{vsize: 1}).executing() || (stat{}).executing() {
		t.Error("an environment that is not in place is taken for one that is empty")
	}
	if st, err := readStat(2); err == nil && st.ppid == 0 && st.vsize == 0 && !st.kernel() {
		t.Errorf("%+v is taken for a program", st)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) R 1 (b) S 2 3 4 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1 1"))
	f.Add([]byte(")"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if st, err := parseStat(b); err == nil && st.state == 0 {
			t.Errorf("%q has no state", b)
		}
	})
}

// What the kernel killed for lack of memory is counted; a file that says nothing of it is
// none.
func TestOOMKills(t *testing.T) {
	for events, want := range map[string]uint64{
		"low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 0\n": 1,
		"oom 5\noom_kill 0\n": 0, "": 0, "oom_kill": 0, "oom_kill x\n": 0,
	} {
		if got := oomKills(events); got != want {
			t.Errorf("%q: %d", events, got)
		}
	}
}

// The cgroup is found wherever the file system is mounted, also from inside a
// container, and not where the mount does not show it.
func TestCgroupDir(t *testing.T) {
	t.Parallel()
	line := func(root, point, kind string) string {
		return fmt.Sprintf("40 30 0:37 %s %s rw,relatime shared:9 - %s cgroup rw\n", root, point, kind)
	}
	for _, c := range []struct{ mounts, path, want string }{
		{line("/", "/sys/fs/cgroup", "cgroup2"), "/system.slice/a.service", "/sys/fs/cgroup/system.slice/a.service"},
		{line("/", "/sys/fs/cgroup/cpu", "cgroup") + line("/", "/sys/fs/cgroup/unified", "cgroup2"), "/", "/sys/fs/cgroup/unified"},
		{line("/docker/x", "/sys/fs/cgroup", "cgroup2"), "/docker/x/y", "/sys/fs/cgroup/y"},
		{line("/docker/x", "/sys/fs/cgroup", "cgroup2"), "/other", ""},
		{line("/", `/mnt/with\040space`, "cgroup2"), "/a", "/mnt/with space/a"},
		{line("/", "/sys/fs/cgroup", "cgroup2"), "/../outside", "/sys/fs/cgroup/outside"},
		{"", "/", ""},
	} {
		got, err := cgroupDir(c.mounts, c.path)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q in %q: %q, %v", c.path, c.mounts, got, err)
		}
	}
}
