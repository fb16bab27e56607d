package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program's name may hold anything; only what is behind its last parenthesis
// counts. Parse from the first and this fails.
func TestReadStat_OfAnOddName(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "a) R 1 (b")
	b, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "1000")
	for err = cmd.Start(); err != nil; err = cmd.Start() { // ETXTBSY, while another fork holds it
		cmd = exec.Command(program, "1000")
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	st, err := readStat(cmd.Process.Pid)
	if err != nil || st.ppid != os.Getpid() || !st.alive() || st.start == 0 {
		t.Errorf("%+v %v", st, err)
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
