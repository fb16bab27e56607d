package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A family finds the children of processes: from /proc/PID/task/*/children, at
// a cost that depends on the tree alone, or, where the kernel lacks those files
// (CONFIG_PROC_CHILDREN), from one look at all processes.
type family struct {
	all map[int][]int // by parent; nil = ask the files
}

// look prepares to find children as they are now.
func (h *Host) look() (family, error) {
	if h.listed {
		return family{}, nil
	}
	all, err := snapshot()
	return family{all: byParent(all)}, err
}

// childrenListed reports whether the kernel has the files children.
func childrenListed() bool {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	return err == nil
}

func (f family) children(pid int) ([]int, error) {
	if f.all != nil {
		return f.all[pid], nil
	}
	return childrenOf(pid)
}

// adopted are the children of our main thread, to which the kernel gives
// orphans: it picks the first living thread of a subreaper.
func (f family) adopted() ([]int, error) {
	if f.all != nil {
		return f.all[os.Getpid()], nil
	}
	return childrenOfThread("/proc/self/task/" + strconv.Itoa(os.Getpid()))
}

// snapshot reads every process that this program may see. Whoever looks for what
// lives must not take an error for nobody.
func snapshot() (map[int]stat, error) {
	pids, err := allPIDs()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	all := make(map[int]stat, len(pids))
	for _, pid := range pids {
		st, err := readStat(pid)
		switch {
		case err == nil:
			all[pid] = st
		case !unseen(err):
			return nil, fmt.Errorf("look at the processes: %w", err)
		}
	}
	return all, nil
}

// unseen reports whether an error of reading /proc/PID says that the process is
// gone, or hidden from us as another user's. Anything else, too many open files
// for example, says nothing of the process.
func unseen(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission)
}

func byParent(all map[int]stat) map[int][]int {
	parents := make(map[int][]int)
	for pid, st := range all {
		parents[st.ppid] = append(parents[st.ppid], pid)
	}
	return parents
}

// withDescendants are the processes of all among seeds, and all that descend
// from them, except those in spared, which are not passed through either.
func withDescendants(all map[int]stat, seeds []int, spared map[int]bool) []stat {
	parents := byParent(all)
	seen := map[int]bool{}
	var found []stat
	for len(seeds) > 0 {
		pid := seeds[len(seeds)-1]
		seeds = seeds[:len(seeds)-1]
		st, ok := all[pid]
		if !ok || seen[pid] || spared[pid] {
			continue
		}
		seen[pid] = true
		found = append(found, st)
		seeds = append(seeds, parents[pid]...)
	}
	return found
}
