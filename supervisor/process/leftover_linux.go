package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func (h *Host) endLeftover(ctx context.Context, id Identity, mark, cgroup string) (int, error) {
	if id.BootID != "" && id.BootID != h.self.boot {
		return 0, nil // all of that boot are dead, whoever has their numbers now
	}
	l, err := h.leftoverLeaf(cgroup)
	if err != nil {
		return 0, err
	}
	if l != nil {
		defer func() { h.removeLeftover(l) }()
	}
	spared := ancestors()
	found, err := endBound(ctx, func() []stat {
		all := snapshot()
		var seeds []int
		// The number counts only in the namespace it was recorded in. After a
		// wrong start time it is a stranger's.
		if st, ok := all[id.PID]; ok && id.Known() && h.self.with(st) == id {
			seeds = append(seeds, id.PID)
		}
		if l != nil {
			seeds = append(seeds, l.pids()...)
		}
		if mark != "" {
			seeds = append(seeds, withMark(all, func(m string) bool { return m == mark })...)
		}
		return living(withDescendants(all, seeds, spared))
	})
	if err != nil || l == nil {
		return found, err
	}
	// What was forked in the cgroup while we looked.
	if err := l.kill(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	bound, cancel := context.WithTimeout(ctx, KillBound)
	defer cancel()
	if err := l.waitEmpty(bound); err != nil {
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		return found, &StuckError{PIDs: l.pids()}
	}
	return found, nil
}

func (h *Host) endMarked(ctx context.Context, match func(mark string) bool) (int, error) {
	spared := ancestors()
	return endBound(ctx, func() []stat {
		all := snapshot()
		return living(withDescendants(all, withMark(all, match), spared))
	})
}

// withMark are the processes whose SOVEREIGN_PROCESS matches.
func withMark(all map[int]stat, match func(string) bool) []int {
	var pids []int
	for pid, st := range all {
		if !st.alive() {
			continue
		}
		if mark, ok := markOf(pid); ok && match(mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ancestors are this program and those that it descends from: a command run by
// a leftover must not kill the hand that runs it, nor itself.
func ancestors() map[int]bool {
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; {
		spared[pid] = true
		st, err := readStat(pid)
		if err != nil {
			break
		}
		pid = st.ppid
	}
	return spared
}

// leftoverLeaf opens the cgroup of a dead supervisor's child; nil = it is gone,
// or none was given. What is not a leaf of a Host's folder in a cgroup v2 is
// refused: everything in it would be killed.
func (h *Host) leftoverLeaf(path string) (*leaf, error) {
	if path == "" {
		return nil, nil
	}
	path = filepath.Clean(path)
	root := filepath.Dir(path)
	if !filepath.IsAbs(path) || !strings.HasPrefix(filepath.Base(root), rootPrefix) {
		return nil, fmt.Errorf("recorded cgroup %q is none of a supervisor's", path)
	}
	if h.groups != nil && root == h.groups.root {
		return nil, nil // our own; its trees are not left over
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return nil, nil
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("recorded cgroup %q is in no cgroup v2", path)
	}
	l, err := openLeaf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return l, err
}

// removeLeftover removes the leaf and, if it was the last, the dead supervisor's
// folder.
func (h *Host) removeLeftover(l *leaf) {
	l.remove()
	root := filepath.Dir(l.path)
	if err := removeCgroup(root); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
		h.log.Warn("cgroup of a dead supervisor was not removed", "cgroup", root, "err", err)
	}
}

// endStrays ends, at Close, what came to us as subreaper and belongs to no tree
// that we know: it left its session and wiped its environment.
func (h *Host) endStrays(ctx context.Context) error {
	_, err := endBound(ctx, func() []stat {
		h.mu.Lock()
		defer h.mu.Unlock()
		f := h.look()
		w := walk{family: f, seen: map[int]bool{}, owns: func(stat) bool { return false }}
		for _, pid := range h.orphansLocked(f) {
			if st, err := readStat(pid); err == nil && st.session != h.session && !h.foreign(pid) {
				w.visit(pid, true)
			}
		}
		return living(w.found)
	})
	return err
}
