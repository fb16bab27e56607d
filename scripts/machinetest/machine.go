// Package machinetest runs a test's program on a machine of its own: a Linux that runs as a
// process (user-mode-linux) and has this machine's files to read. There root may do what
// it may not do here, set the clock, for example, or have the controllers of cgroup v2.
//
// The machine begins with a shell script as its first process, which says on its standard
// output what it finds, and powers the machine off. It has 256 MiB of memory, too little
// for the race detector, and a folder of tmpfs at /dev/shm once the script has mounted it.
//
// It is for tests alone. Who calls it is skipped where there is no such machine.
package machinetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Build has go make a program without the race detector, from args that lack the -o, and
// returns its path. It skips the test where no machine could run it.
func Build(t *testing.T, args ...string) (program string) {
	t.Helper()
	kernel(t)
	program = filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "-o", program, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Run starts a machine whose first process is the script init, with variable, a NAME=VALUE,
// in its environment, and returns all that it said, when it is off. within bounds how long
// that may take: late reports that it was over first. err is how the machine failed.
func Run(t *testing.T, init, variable string, within time.Duration) (said []byte, late bool, err error) {
	t.Helper()
	path, dir := kernel(t), t.TempDir()
	first := filepath.Join(dir, "init")
	if err := os.WriteFile(first, []byte(init), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	machine := exec.CommandContext(ctx, path, "mem=256M", "quiet", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		"init="+first, variable, "con=null", "con0=null,fd:1")
	machine.Dir = dir
	machine.Env = append(os.Environ(), "HOME="+dir, "TMPDIR=/dev/shm")
	machine.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	machine.Cancel = func() error { return syscall.Kill(-machine.Process.Pid, syscall.SIGKILL) }
	machine.WaitDelay = 10 * time.Second
	said, err = machine.CombinedOutput()
	return said, ctx.Err() != nil, err
}

// kernel is the path of the machine's Linux. It skips the test where there is none, or no
// place for the machine's memory.
func kernel(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("linux.uml")
	if err != nil {
		t.Skip("it needs linux.uml (Debian: user-mode-linux)")
	}
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		t.Skip("it needs /dev/shm, for that machine's memory")
	}
	return path
}
