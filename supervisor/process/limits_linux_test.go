package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// enableLimits moves the supervisor away, has its own cgroup pass the controllers to
// the Host's folder and that to its leaves, and a leaf takes the limits. The files
// are plain ones here: what the kernel makes of them it cannot show. A missing
// controller leaves all as it was.
func TestEnableLimits_Files(t *testing.T) {
	own := t.TempDir()
	c := &cgroups{own: own, root: filepath.Join(own, "sovereign-x"), idle: map[string]*leaf{}, busy: map[string]*leaf{}}
	home, work := filepath.Join(c.root, supervisorLeaf), filepath.Join(c.root, "w.1")
	files := map[string]string{}
	for _, dir := range []string{own, c.root, home, work} {
		for _, name := range []string{"cgroup.procs", "cgroup.subtree_control", "memory.max", "pids.max"} {
			files[filepath.Join(dir, name)] = ""
		}
	}
	files[filepath.Join(own, "cgroup.controllers")] = "cpu memory\n"
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
		}
	}
	if err := c.enableLimits(); err == nil || c.limited() {
		t.Errorf("without pids: %v", err)
	}
	is(filepath.Join(home, "cgroup.procs"), "")
	if err := os.WriteFile(filepath.Join(own, "cgroup.controllers"), []byte("cpu memory pids\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := c.enableLimits(); err != nil || !c.limited() {
			t.Fatal(err)
		}
	}
	is(filepath.Join(home, "cgroup.procs"), strconv.Itoa(os.Getpid()))
	is(filepath.Join(own, "cgroup.subtree_control"), "+memory +pids")
	is(filepath.Join(c.root, "cgroup.subtree_control"), "+memory +pids")
	l, err := c.take("w.1", 64<<20, 7)
	if err != nil {
		t.Fatal(err)
	}
	is(filepath.Join(l.path, "memory.max"), "67108864")
	is(filepath.Join(l.path, "pids.max"), "7")
}

// What is lacking is said with what gives it: a delegation does not, where cgroup v1 has
// the controller. Leave out remedy and this fails.
func TestRemedy_NamesWhoHasTheController(t *testing.T) {
	for _, c := range []struct{ member, want string }{
		{"0::/a.slice\n", "Delegate=yes"},
		{"9:name=systemd:/\n8:pids:/\n4:cpu,memory:/x:y\n0::/\n", "systemd.unified_cgroup_hierarchy=1"},
		{"9:name=systemd:/memory\n8:pids:/memory\n0::/memory\n", "Delegate=yes"},
		{"", "Delegate=yes"},
	} {
		if got := remedy(c.member, "memory"); !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.member, got, c.want)
		}
	}
}
