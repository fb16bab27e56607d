package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// supervisorLeaf is where the supervisor goes when limits are wanted.
const supervisorLeaf = "supervisor"

func (c *cgroups) limited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

// enableLimits passes the controllers memory and pids down to the leaves, in
// this order:
//
//  1. The supervisor moves to root/supervisor: a cgroup that passes controllers
//     down may hold no processes itself (but for the root of the hierarchy).
//  2. own passes them to root, unless it does already; it fails with EBUSY when
//     other processes than ours are in own.
//  3. root passes them to its leaves.
//
// A failure undoes step 1 and leaves everything usable without limits.
func (c *cgroups) enableLimits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits {
		return nil
	}
	has, err := words(c.own, "cgroup.controllers")
	if err != nil {
		return err
	}
	for _, need := range []string{"memory", "pids"} {
		if !slices.Contains(has, need) {
			member, _ := os.ReadFile("/proc/self/cgroup") // it only makes the advice better
			return fmt.Errorf("the cgroup v2 %s has no controller %q (it has: %s); %s",
				c.own, need, strings.Join(has, " "), remedy(string(member), need))
		}
	}
	if err := c.moveAway(); err != nil {
		return err
	}
	if err := c.pass(); err != nil {
		c.moveBack()
		return fmt.Errorf("%w; other processes may be in %s: run the supervisor as a systemd service with Delegate=yes", err, c.own)
	}
	c.limits = true
	return nil
}

// remedy says how cgroup v2 gets a controller that it lacks, given /proc/self/cgroup,
// "ID:CONTROLLERS:PATH" for each hierarchy.
func remedy(member, controller string) string {
	for line := range strings.Lines(member) {
		if fields := strings.SplitN(line, ":", 3); len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return "cgroup v1 has it on this machine: start the system with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)"
		}
	}
	return "under systemd, Delegate=yes gives it"
}

func (c *cgroups) moveAway() error {
	home := filepath.Join(c.root, supervisorLeaf)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := writeCgroup(home, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		os.Remove(home)
		return err
	}
	c.moved = true
	return nil
}

func (c *cgroups) pass() error {
	passed, err := words(c.own, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var add []string
	for _, name := range []string{"memory", "pids"} {
		if !slices.Contains(passed, name) {
			add = append(add, "+"+name)
		}
	}
	if len(add) > 0 {
		c.enabled = strings.Join(add, " ")
		if err := writeCgroup(c.own, "cgroup.subtree_control", c.enabled); err != nil {
			c.enabled = ""
			return err
		}
	}
	return writeCgroup(c.root, "cgroup.subtree_control", "+memory +pids")
}

// moveBack undoes enableLimits, as far as it went. Called with mu held.
func (c *cgroups) moveBack() {
	if !c.moved {
		return
	}
	writeCgroup(c.root, "cgroup.subtree_control", "-memory -pids")
	if c.enabled != "" {
		writeCgroup(c.own, "cgroup.subtree_control", strings.ReplaceAll(c.enabled, "+", "-"))
		c.enabled = ""
	}
	writeCgroup(c.own, "cgroup.procs", strconv.Itoa(os.Getpid()))
	os.Remove(filepath.Join(c.root, supervisorLeaf))
	c.moved, c.limits = false, false
}

func words(dir, file string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	return strings.Fields(string(b)), err
}

func writeCgroup(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}
