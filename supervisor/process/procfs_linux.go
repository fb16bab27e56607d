package process

import (
	"bytes"
	"fmt"
	"os"
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
}

// alive reports whether the process can still do anything.
func (s stat) alive() bool { return s.state != 'Z' && s.state != 'X' }

// exiting reports whether the process has given up its memory, and with it its
// environment, but not yet its descriptors, its locks and its children.
func (s stat) exiting() bool { return s.alive() && s.vsize == 0 }

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
	if s.start, err = strconv.ParseUint(string(f[19]), 10, 64); err != nil {
		return stat{}, err
	}
	s.vsize, err = strconv.ParseUint(string(f[20]), 10, 64)
	return s, err
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

// markOf is the value of SOVEREIGN_PROCESS in the environment that pid was
// executed with; ok is false where there is none or it cannot be read (another
// user's process).
//
// In an exec the environment reads as empty, or cut short, for a moment, and a
// process that forks and executes all the time is often there: that there is
// none counts only when it was seen again and again outside an exec. An error
// says that it may have one.
func markOf(pid int) (mark string, ok bool, err error) {
	for settled, looks := 0, 0; settled < 3 && looks < 200; looks++ {
		during := executing(pid)
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil && !unseen(err) {
			return "", false, err
		}
		if err != nil {
			return "", false, nil
		}
		if mark, ok = markIn(env); ok {
			return mark, true, nil
		}
		if !during {
			settled++
			continue
		}
		time.Sleep(50 * time.Microsecond) // the kernel tells nobody when an exec is done
	}
	return "", false, nil
}

// markIn finds it in the entries of an environment.
func markIn(env []byte) (mark string, ok bool) {
	prefix := []byte(MarkVariable + "=")
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, found := bytes.CutPrefix(entry, prefix); found {
			return string(value), true
		}
	}
	return "", false
}

// executing reports whether pid is in the middle of an exec, when it has memory,
// but its environment is not in place yet and reads as empty.
func executing(pid int) bool {
	b, err := readSmall("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const vsize, envEnd = 23 - 3, 51 - 3
	return len(f) > envEnd && string(f[vsize]) != "0" && string(f[envEnd]) == "0"
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
