package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

func (p *Process) cgroupPath() string {
	if p.leaf == nil {
		return ""
	}
	return p.leaf.path
}

func (p *Process) signal(sig syscall.Signal, resume bool) error {
	if done, err := p.signalGroup(sig, resume); done {
		return err
	}
	members, err := p.members()
	errs := []error{err}
	for _, st := range members {
		errs = append(errs, sendExactly(st, sig))
		if resume {
			errs = append(errs, sendExactly(st, unix.SIGCONT))
		}
	}
	p.host.wake() // while we held a pidfd the reaper may have left its process
	return errors.Join(errs...)
}

// signalGroup signals the process group as long as the child is not reaped, and
// so its number is its own; done is false after that.
func (p *Process) signalGroup(sig syscall.Signal, resume bool) (done bool, err error) {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.host.running[p.id.PID] != p {
		return false, nil
	}
	err = unix.Kill(-p.id.PID, sig)
	if err == nil && resume {
		err = unix.Kill(-p.id.PID, unix.SIGCONT)
	}
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	return true, err
}

func (p *Process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *Process) treeGone() bool {
	p.host.mu.Lock()
	gone := p.gone
	p.host.mu.Unlock()
	if gone {
		return true
	}
	if !p.hasExited() {
		return false
	}
	if p.leaf != nil {
		gone = p.leaf.empty()
	} else {
		members, err := p.members()
		gone = err == nil && len(members) == 0
	}
	if gone {
		p.setGone()
	}
	return gone
}

// setGone frees what the Host keeps for the tree.
func (p *Process) setGone() {
	p.host.mu.Lock()
	first := !p.gone
	p.gone = true
	delete(p.host.trees, p)
	p.host.mu.Unlock()
	if first && p.leaf != nil {
		p.host.groups.put(p.leaf)
	}
}

func (p *Process) waitTree(ctx context.Context) error {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		// Without a cgroup, what is left of the tree hangs from orphans that we
		// adopted: the last change is that we reap one of them.
		change := p.host.waitReaped()
		if p.treeGone() {
			return nil
		}
		if p.leaf != nil {
			if err := p.waitLeaf(ctx); err != nil {
				return err
			}
			continue
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Process) waitLeaf(ctx context.Context) error {
	unwatch, err := p.host.groups.watch(ctx)
	if err != nil {
		return err
	}
	defer unwatch()
	return p.leaf.waitEmpty(ctx)
}

func (p *Process) killTree(ctx context.Context) error {
	if p.treeGone() {
		return nil
	}
	bound, cancel := context.WithTimeout(ctx, KillBound)
	defer cancel()
	err := p.kill(bound)
	if err == nil {
		err = p.waitTree(bound)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		pids, err := p.livingPIDs()
		return &StuckError{PIDs: pids, Cause: err}
	}
	return err
}

func (p *Process) kill(ctx context.Context) error {
	if p.leaf != nil {
		err := p.leaf.kill()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var change, exited <-chan struct{}
	_, _, err := end(ctx, func() ([]stat, error) {
		change, exited = p.host.waitReaped(), nil
		if !p.hasExited() {
			exited = p.exited
		}
		return p.members()
	}, func([]stat) error {
		p.host.wake()
		select {
		case <-change:
			return nil
		case <-exited:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return err
}

func (p *Process) livingPIDs() ([]int, error) {
	members, err := p.members()
	return pidsOf(living(members)), err
}

// members are the processes of the tree, zombies too. It returns none without an
// error only when there is none.
//
// The reaper is kept out by mu, so our direct children stay in their list even
// when they end. A process that loses its parent while we walk comes into that
// list: then we walk again.
func (p *Process) members() ([]stat, error) {
	if p.leaf != nil {
		return p.inLeaf(), nil // whether that is empty the kernel says
	}
	h := p.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		f, err := h.look()
		if err != nil {
			return nil, err
		}
		orphans, err := h.orphansLocked(f)
		if err != nil {
			return nil, err
		}
		w := walk{family: f, seen: map[int]bool{}, owns: p.ownsLocked}
		if h.running[p.id.PID] == p {
			w.visit(p.id.PID, true)
		}
		for _, pid := range orphans {
			w.visit(pid, false)
		}
		if f, err = h.look(); err != nil {
			return nil, err
		}
		again, err := h.orphansLocked(f)
		if err != nil || w.err != nil {
			return nil, errors.Join(err, w.err)
		}
		if slices.Equal(again, orphans) {
			return w.found, nil
		}
	}
}

// ownsLocked reports whether a process belongs to the tree for its own sake, not
// for its parent's. One that is just exiting can no longer be asked; it counts,
// whosoever it was, for the moment until it is reaped.
func (p *Process) ownsLocked(st stat) (bool, error) {
	// A session's number is not given to anybody else while the session has
	// members; once another child has it, ours has none.
	if other := p.host.running[p.id.PID]; other == nil || other == p {
		if st.session == p.id.PID || st.pgrp == p.id.PID {
			return true, nil
		}
	}
	if p.mark == "" || !st.alive() {
		return false, nil
	}
	mark, ok, err := p.host.markLocked(st)
	if err != nil {
		return false, err
	}
	if !ok {
		now, err := readStat(st.pid)
		return err == nil && now.exiting(), nil
	}
	return mark == p.mark, nil
}

// A marked is what was read of an orphan's environment. It can change only by an
// exec that was given another one.
type marked struct {
	start uint64 // of the process that was read
	mark  string // "" = there is none
}

// markLocked is markOf, remembered for our direct children: each tree that ends
// asks after all of them. One that is exiting, or in the middle of an exec, has no answer
// to remember.
func (h *Host) markLocked(st stat) (mark string, ok bool, err error) {
	if m, known := h.marks[st.pid]; known && m.start == st.start {
		return m.mark, m.mark != "", nil
	}
	if mark, ok, err = markOf(st); err != nil {
		return "", false, err
	}
	if now, err := readStat(st.pid); err == nil && now.ppid == os.Getpid() && (ok || now.alive() && !now.exiting() && !now.executing()) {
		h.marks[st.pid] = marked{st.start, mark}
	}
	return mark, ok, nil
}

// ownsNow looks at the child itself first: while it is not reaped its number is its
// own.
func (p *Process) ownsNow(pid int) (owns, known bool) {
	p.host.mu.Lock()
	leads := pid == p.id.PID && p.host.running[pid] == p
	p.host.mu.Unlock()
	switch {
	case leads:
		return true, true
	case p.leaf != nil:
		owns = slices.Contains(p.leaf.pids(), pid)
	default:
		members, err := p.members()
		if err != nil {
			return false, false
		}
		owns = slices.ContainsFunc(members, func(st stat) bool { return st.pid == pid })
	}
	if owns {
		return true, true
	}
	st, err := readStat(pid)
	return false, err == nil && st.alive()
}

// inLeaf are the processes in the cgroup. A process is read before the cgroup
// is listed again, so that a number in both lists was not another's meanwhile.
func (p *Process) inLeaf() []stat {
	var found []stat
	for _, pid := range p.leaf.pids() {
		if st, err := readStat(pid); err == nil {
			found = append(found, st)
		}
	}
	still := p.leaf.pids()
	return slices.DeleteFunc(found, func(st stat) bool { return !slices.Contains(still, st.pid) })
}

// A walk goes down from a process and collects what belongs to one tree: each
// process that is owned, and all that descends from it.
type walk struct {
	family family
	owns   func(stat) (bool, error)
	seen   map[int]bool
	found  []stat
	err    error // the first; some may not have been found
}

func (w *walk) visit(pid int, owned bool) {
	if w.seen[pid] {
		return
	}
	w.seen[pid] = true
	st, err := readStat(pid)
	if err != nil {
		if !unseen(err) {
			w.fail(err)
		}
		return
	}
	if !owned {
		owned, err = w.owns(st)
		w.fail(err)
	}
	if owned {
		w.found = append(w.found, st)
	}
	children, err := w.family.children(pid)
	w.fail(err)
	for _, child := range children {
		w.visit(child, owned)
	}
}

func (w *walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
