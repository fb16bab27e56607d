package process

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A stat is what we need of /proc/PID/stat. It can be read of a zombie too.
type stat struct {
	pid, ppid, pgrp, session int
	state                    byte // 'Z' = zombie, 'X' = dead
	start                    uint64
	vsize                    uint64
	flags                    uint64
	environ                  span // of the addresses of its environment; zero where it may not be read, or during an exec
}

// A span is a range of addresses.
type span struct{ from, to uint64 }

func (s span) size() uint64 { return s.to - s.from }

// alive reports whether the process can still do anything.
func (s stat) alive() bool { return s.state != 'Z' && s.state != 'X' }

// exiting reports whether the process has given up its memory, and with it its
// environment, but not yet its descriptors, its locks and its children.
func (s stat) exiting() bool { return s.alive() && s.vsize == 0 }

// kernel reports whether it is a thread of the kernel, which has no environment.
func (s stat) kernel() bool { return s.flags&pfKthread != 0 }

const pfKthread = 0x00200000 // PF_KTHREAD of <linux/sched.h>; an exec clears it

// executing reports whether the process is in the middle of an exec, when it has
// memory, but its environment is not in place yet and reads as empty.
func (s stat) executing() bool { return s.vsize != 0 && s.environ.to == 0 }

// wholeIn reports whether env, read after s, is all of an environment, and so was
// in place when it was read.
func (s stat) wholeIn(env []byte) bool {
	return s.environ.to != 0 && s.environ.size() == uint64(len(env))
}

func readStat(pid int) (stat, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	b, err := readSmall(path)
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return stat{}, fmt.Errorf("%s: %w", path, err)
	}
	s.pid = pid
	return s, nil
}

// parseStat starts at the last parenthesis: the name of the program, before it,
// may hold spaces and parentheses itself.
func parseStat(b []byte) (s stat, err error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return s, fmt.Errorf("no program name in %q", b)
	}
	f := bytes.Fields(b[i+1:]) // f[0] is field 3
	if len(f) < 21 || len(f[0]) != 1 {
		return s, fmt.Errorf("%d fields after the name in %q", len(f), b)
	}
	s.state = f[0][0]
	for _, field := range []struct {
		at int
		to *int
	}{{1, &s.ppid}, {2, &s.pgrp}, {3, &s.session}} {
		if *field.to, err = strconv.Atoi(string(f[field.at])); err != nil {
			return stat{}, err
		}
	}
	numbers := []struct {
		at int
		to *uint64
	}{{6, &s.flags}, {19, &s.start}, {20, &s.vsize}, {47, &s.environ.from}, {48, &s.environ.to}}
	for _, field := range numbers {
		if field.at >= len(f) {
			break // a kernel that does not tell where environments are
		}
		if *field.to, err = strconv.ParseUint(string(f[field.at]), 10, 64); err != nil {
			return stat{}, err
		}
	}
	return s, nil
}

// readSmall reads a file of /proc with three system calls and one allocation.
func readSmall(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return bytes.Clone(buf[:n]), nil
}

// selfIdent is what the identities of all our children share.
type selfIdent struct{ boot, namespace string }

func readSelf() (selfIdent, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return selfIdent{}, err
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return selfIdent{}, err
	}
	return selfIdent{strings.TrimSpace(string(boot)), ns}, nil
}

func (s selfIdent) with(st stat) Identity {
	return Identity{BootID: s.boot, PID: st.pid, StartTime: st.start, PIDNamespace: s.namespace}
}

// markOf is the value of SOVEREIGN_PROCESS, or else SOVEREIGN_PROBE, in the environment
// that the process of st, as it was read just now, was executed with; ok is false where
// there is none or it cannot be read (another user's process).
//
// In an exec the environment reads as empty, or cut short, for a moment, and a
// process that forks and executes all the time is often there: that there is none
// counts where all of the environment was read, or else only when it was seen again
// and again outside an exec, or when the exec has lasted for half a second: on a busy
// machine a process may have to wait for the processor in the middle of it. An error
// says that it may have one.
func markOf(st stat) (mark string, ok bool, err error) {
	return variableOf(st, MarkVariable, ProbeVariable)
}

// variableOf is markOf for the first variable of those names that is there.
func variableOf(st stat, names ...string) (value string, ok bool, err error) {
	if st.kernel() {
		return "", false, nil
	}
	for settled, looks := 0, 0; settled < 3 && looks < 600; looks++ {
		if looks > 0 {
			if st.vsize != 0 {
				time.Sleep(lookAgain(looks)) // the kernel tells nobody when an exec is done
			}
			st, err = readStat(st.pid)
		}
		var env []byte
		if err == nil {
			env, err = readEnviron(st)
		}
		if err != nil && !unseen(err) {
			return "", false, err
		}
		if err != nil {
			return "", false, nil
		}
		for _, name := range names {
			if value, ok = valueIn(env, name); ok {
				return value, true, nil
			}
		}
		if len(env) > 0 && st.wholeIn(env) {
			return "", false, nil
		}
		// An exec puts the end of the environment behind its begin for a moment: one that is
		// empty is believed only when it stays so.
		if len(env) > 0 || !st.executing() {
			settled++
		}
	}
	return "", false, nil
}

// lookAgain is how long to wait after so many looks at an environment that is not there.
func lookAgain(looks int) time.Duration {
	if looks < 100 {
		return 50 * time.Microsecond
	}
	return time.Millisecond
}

// readEnviron reads the environment of the process of st: by three system calls,
// where st knows its size.
func readEnviron(st stat) (env []byte, err error) {
	path := "/proc/" + strconv.Itoa(st.pid) + "/environ"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	const usual, most = 4 << 10, 1 << 20
	for room := max(usual, min(most, int(st.environ.size()))); ; room = usual {
		env = slices.Grow(env, room)
		n, err := unix.Read(fd, env[len(env):cap(env)])
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		env = env[:len(env)+n]
		if n == 0 || st.wholeIn(env) {
			return env, nil
		}
	}
}

// valueIn finds the variable of that name in the entries of an environment.
func valueIn(env []byte, name string) (value string, ok bool) {
	prefix := []byte(name + "=")
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, found := bytes.CutPrefix(entry, prefix); found {
			return string(value), true
		}
	}
	return "", false
}

// childrenOf are the direct children of all threads of pid, zombies too. While
// children come and go some may be missed: stop the process first, or look again.
func childrenOf(pid int) ([]int, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil && !unseen(err) {
		return nil, err
	}
	var pids []int
	for _, t := range tasks {
		more, err := childrenOfThread(dir + "/" + t.Name())
		if err != nil {
			return nil, err
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// childrenOfThread reads the file children of a folder /proc/PID/task/TID.
func childrenOfThread(task string) ([]int, error) {
	b, err := os.ReadFile(task + "/children")
	if err != nil && !unseen(err) {
		return nil, err
	}
	var pids []int
	for f := range bytes.FieldsSeq(b) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// allPIDs are the numbers of all processes in our /proc.
func allPIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
