package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	found, err := endBound(ctx, func() ([]stat, error) {
		// As a rule the kernel has ended it together with the supervisor. Then there is
		// nobody to look for descendants of.
		if there, err := h.there(id); err != nil || mark == "" && !there && (l == nil || l.empty()) {
			return nil, err
		}
		all, err := snapshot()
		if err != nil {
			return nil, err
		}
		var seeds []int
		if st, ok := all[id.PID]; ok && h.is(st, id) {
			seeds = append(seeds, id.PID)
		}
		if l != nil {
			seeds = append(seeds, l.pids()...)
		}
		if mark != "" {
			marks, err := marksIn(all, func(m string) bool { return m == mark })
			if err != nil {
				return nil, err
			}
			seeds = slices.AppendSeq(seeds, maps.Keys(marks))
		}
		return living(withDescendants(all, seeds, spared)), nil
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

// is reports whether the process of st is the one that id was recorded of. The number
// counts only in the namespace it was recorded in. After a wrong start time it is a
// stranger's.
func (h *Host) is(st stat, id Identity) bool {
	return id.Known() && h.self.with(st) == id
}

// there reports whether the process that id was recorded of lives, or waits to be
// reaped.
func (h *Host) there(id Identity) (bool, error) {
	st, err := readStat(id.PID)
	if err != nil && unseen(err) {
		return false, nil
	}
	return err == nil && h.is(st, id), err
}

func (h *Host) endMarked(ctx context.Context, match func(mark string) bool) (int, error) {
	spared := ancestors()
	bearers := map[int]string{} // by PID: the mark of it, or of what it descended from when it was found
	found, err := endBound(ctx, func() ([]stat, error) {
		all, err := snapshot()
		if err != nil {
			return nil, err
		}
		marks, err := marksIn(all, match)
		if err != nil {
			return nil, err
		}
		present := living(withDescendants(all, slices.Collect(maps.Keys(marks)), spared))
		for _, st := range present {
			bearers[st.pid] = nearestMark(all, marks, st.pid)
		}
		return present, nil
	})
	if stuck, ok := errors.AsType[*StuckError](err); ok {
		for _, pid := range stuck.PIDs {
			if mark := bearers[pid]; !slices.Contains(stuck.Marks, mark) {
				stuck.Marks = append(stuck.Marks, mark)
			}
		}
	}
	return found, err
}

// marksIn are the values of SOVEREIGN_PROCESS that match, by the processes that
// live with them in their environment.
func marksIn(all map[int]stat, match func(string) bool) (map[int]string, error) {
	marks := map[int]string{}
	for pid, st := range all {
		if !st.alive() {
			continue
		}
		mark, ok, err := markOf(st)
		if err != nil {
			return nil, fmt.Errorf("read the environment of a process: %w", err)
		}
		if ok && match(mark) {
			marks[pid] = mark
		}
	}
	return marks, nil
}

// nearestMark is the mark of pid, or of the next of its ancestors that has one.
// Not all were read at one moment, so the way up may go in a circle.
func nearestMark(all map[int]stat, marks map[int]string, pid int) string {
	for range all {
		if mark, ok := marks[pid]; ok {
			return mark
		}
		pid = all[pid].ppid
	}
	return ""
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
	return &leaf{name: filepath.Base(path), path: path}, nil
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
	_, err := endBound(ctx, func() ([]stat, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		f, err := h.look()
		if err != nil {
			return nil, err
		}
		orphans, err := h.orphansLocked(f)
		w := walk{family: f, seen: map[int]bool{}, owns: func(stat) (bool, error) { return false, nil }, err: err}
		for _, pid := range orphans {
			if st, err := readStat(pid); err == nil && st.session != h.session && !h.foreign(pid) {
				w.visit(pid, true)
			}
		}
		return living(w.found), w.err
	})
	return err
}
