package systemd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait: beyond it something is broken.
const patience = 5 * time.Minute

// A container is a booted systemd.
type container struct {
	t      *testing.T
	root   string    // its root folder
	nspawn *exec.Cmd // systemd-nspawn, in a cgroup of its own
	init   int       // number of its PID 1, as we see it
	groups []string  // its cgroups
	ended  chan struct{}
	words  bytes.Buffer // what nspawn and init print
}

// lacking says what is missing to boot one, "" if nothing is.
func lacking() string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	for _, program := range []string{"systemd-nspawn", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			return "it needs " + program + " (Debian: systemd-container, util-linux)"
		}
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		return "it needs systemd itself"
	}
	if len(hierarchies()) == 0 {
		return "it needs cgroup v2"
	}
	return ""
}

// hierarchies are the folders in which a container gets a cgroup of its own: where
// two began in the same one, each systemd would manage the other's processes.
func hierarchies() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	var out []string
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			out = append(out, dir)
		}
	}
	return out
}

// boot boots a container of the machine's own root after prepare has put into it
// what the test needs. At the end of the test it is powered off, and nothing of it is
// left.
func boot(t *testing.T, prepare func(root string)) *container {
	t.Helper()
	c := &container{t: t, ended: make(chan struct{})}
	dir, err := os.MkdirTemp("", "sovereign-systemd-")
	c.must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	c.root = filepath.Join(dir, "root")
	layer := filepath.Join(dir, "layer")
	c.must(errors.Join(os.Mkdir(c.root, 0o755), os.Mkdir(layer, 0o755)))
	c.must(syscall.Mount("tmpfs", layer, "tmpfs", 0, "mode=0755"))
	t.Cleanup(func() { unmount(t, layer) })
	c.must(errors.Join(os.Mkdir(layer+"/upper", 0o755), os.Mkdir(layer+"/work", 0o755)))
	c.must(syscall.Mount("overlay", c.root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", layer, layer)))
	t.Cleanup(func() { unmount(t, c.root) })
	c.must(os.WriteFile(c.root+"/etc/machine-id", nil, 0o644))
	prepare(c.root)

	name := "sovereign-test-" + strconv.Itoa(os.Getpid())
	enter := ""
	for _, h := range hierarchies() {
		own := filepath.Join(h, name)
		c.must(os.Mkdir(own, 0o755))
		t.Cleanup(func() { removeCgroups(own) })
		c.groups = append(c.groups, own)
		enter += "echo $$ >" + own + "/cgroup.procs && "
	}
	// basic.target: what is installed on the host as a service is not started.
	c.nspawn = exec.Command("/bin/sh", "-c", enter+`exec systemd-nspawn -q -M "$0" -D "$1" --boot --register=no --keep-unit --private-network --console=pipe \
		systemd.unit=basic.target systemd.mask=systemd-timesyncd.service systemd.mask=systemd-pstore.service`, name, c.root)
	c.nspawn.Env = append(os.Environ(), "UNIFIED_CGROUP_HIERARCHY=1") // inside it is as on a current system
	c.nspawn.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	c.nspawn.Stdout, c.nspawn.Stderr = &c.words, &c.words
	c.must(c.nspawn.Start())
	go func() { defer close(c.ended); _ = c.nspawn.Wait() }()
	t.Cleanup(c.powerOff)
	c.eventually("boot", func() bool {
		select {
		case <-c.ended:
			t.Fatalf("the container ended:\n%s", c.words.String())
		default:
		}
		// The first children of nspawn only make the container.
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", c.nspawn.Process.Pid, c.nspawn.Process.Pid))
		if c.init, _ = strconv.Atoi(strings.TrimSpace(string(b))); c.init == 0 {
			return false
		}
		state, _, _ := c.try("systemctl", "is-system-running")
		return state == "running" || state == "degraded"
	})
	return c
}

func (c *container) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// eventually looks until done says so: systemd has no event for all that a test
// waits for.
func (c *container) eventually(what string, done func() bool) {
	c.t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			journal, _, _ := c.try("journalctl", "--no-pager", "-n", "60", "-u", unitName)
			c.t.Fatalf("it never came to: %s\n%s\n%s", what, journal, c.words.String())
		}
	}
}

// try runs a command inside, without the host root's power over the kernel.
func (c *container) try(argv ...string) (stdout string, status int, stderr string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	enter := []string{"-t", strconv.Itoa(c.init), "-m", "-p", "-u", "-i", "-n", "-C", "--",
		"setpriv", "--bounding-set=-sys_time,-sys_boot,-sys_module,-sys_rawio", "--inh-caps=-all", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, argv...)...)
	cmd.Dir = "/"
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", -1, err.Error()
	}
	return strings.TrimSpace(out.String()), cmd.ProcessState.ExitCode(), strings.TrimSpace(errs.String())
}

// run is try for a command that must succeed.
func (c *container) run(argv ...string) string {
	c.t.Helper()
	out, status, errs := c.try(argv...)
	if status != 0 {
		journal, _, _ := c.try("journalctl", "--no-pager", "-n", "60", "-u", unitName)
		c.t.Fatalf("%q: exit status %d\n%s\n%s\n%s", argv, status, out, errs, journal)
	}
	return out
}

// powerOff stops this container, orderly, and by force if that takes too long.
func (c *container) powerOff() {
	const sigRTMin = 34
	if c.init > 0 {
		_ = syscall.Kill(c.init, syscall.Signal(sigRTMin+4)) // power off
	} else {
		_ = c.nspawn.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-c.ended:
		return
	case <-time.After(patience):
		c.t.Errorf("the container did not power off:\n%s", c.words.String())
	}
	for _, own := range c.groups { // all that is in them is ours
		_ = os.WriteFile(filepath.Join(own, "cgroup.kill"), []byte("1"), 0)
	}
	_ = c.nspawn.Process.Kill()
	<-c.ended
}

func unmount(t *testing.T, path string) {
	if err := syscall.Unmount(path, 0); err != nil {
		t.Errorf("unmount %s: %v", path, err)
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
	}
}

// removeCgroups removes the empty folders that nspawn leaves behind.
func removeCgroups(top string) {
	var all []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for i := len(all) - 1; i >= 0; i-- {
		_ = os.Remove(all[i])
	}
}
