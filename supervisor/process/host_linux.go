package process

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Host owns the children of this program. Make it with [NewHost].
type Host struct {
	log     *slog.Logger
	null    *os.File  // /dev/null, for streams that are not given
	thread  *spawner  // makes every child
	groups  *cgroups  // nil = cgroup v2 is not writable
	self    selfIdent // what every child's Identity has in common
	session int       // our own
	pidfds  bool      // the kernel knows pidfds
	listed  bool      // the kernel lists children, see family

	given atomic.Pointer[FileLimit] // that we were started with, where RaiseFiles went beyond; nil = it did not

	ignored []os.Signal // were ignored when we started, and are handled by unignore
	poke    chan os.Signal
	reaped  sync.WaitGroup // the reaper

	mu      sync.Mutex
	running map[int]*Process      // mu guards; by PID, from registration until reaped
	trees   map[*Process]struct{} // mu guards; until their tree is known to be gone
	marks   map[int]marked        // mu guards; of orphans, by PID, until reaped
	forking int                   // mu guards; forks whose PID is not registered yet
	skipped bool                  // mu guards; the reaper left an unknown child because of forking
	changed chan struct{}         // mu guards; closed when an orphan was reaped; nil = nobody waits
	closed  bool                  // mu guards; no more Start
	paused  bool                  // mu guards; nothing is reaped
	deaf    bool                  // mu guards; poke is closed
	forks   sync.WaitGroup        // Starts under way; added to under mu, while not closed
}

// A Process is one child and its tree.
type Process struct {
	host   *Host
	id     Identity
	mark   string
	leaf   *leaf // nil = the tree is found without cgroup
	exited chan struct{}
	exit   Exit // written before exited is closed

	gone bool // host.mu guards; nothing of the tree is left
}

func newHost(log *slog.Logger, main *Thread, from Handed) (_ *Host, _ []*Process, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	self, err := readSelf()
	if err != nil {
		return nil, nil, fmt.Errorf("read own identity: %w", err)
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, nil, fmt.Errorf("read own session: %w", err)
	}
	if err := closeOnExec(); err != nil {
		return nil, nil, fmt.Errorf("keep own descriptors from children: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("become a subreaper: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	thread, err := newSpawner(main)
	if err != nil {
		null.Close()
		return nil, nil, err
	}
	h := &Host{
		log: log, null: null, thread: thread, self: self, session: session,
		pidfds:  pidfdsWork(),
		listed:  childrenListed(),
		poke:    make(chan os.Signal, 1),
		running: map[int]*Process{},
		marks:   map[int]marked{},
		trees:   map[*Process]struct{}{},
	}
	h.given.Store(from.Files)
	if h.ignored, err = unignore(); err != nil {
		return nil, nil, fmt.Errorf("read ignored signals: %w", err)
	}
	if h.groups, err = findCgroups(from.Cgroup); err != nil {
		log.Info("cgroup v2 is not writable; trees are found by session, descent and environment", "cause", err)
	}
	taken := h.inherit(from.Children) // before the reaper starts
	signal.Notify(h.poke, syscall.SIGCHLD)
	h.reaped.Go(h.reap)
	h.wake() // for what ended before
	return h, taken, nil
}

// closeOnExec marks every descriptor above 2, ours and our caller's (a lock
// held by "9>lock", a CI step's pipe), so that none reaches a child.
func closeOnExec() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	if err != nil {
		return err
	}
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// inherit registers the children of an earlier image. Called before the reaper
// runs, so that it mistakes none for an orphan.
func (h *Host) inherit(children []Inherited) []*Process {
	taken := make([]*Process, len(children))
	for i, c := range children {
		p := &Process{host: h, id: c.ID, mark: c.Mark, exited: make(chan struct{})}
		if h.groups != nil && c.Cgroup != "" {
			p.leaf = h.groups.inherit(c.Cgroup)
		}
		h.trees[p] = struct{}{}
		taken[i] = p
		if c.Exit == nil {
			st, err := readStat(c.ID.PID)
			if err == nil && st.ppid == os.Getpid() && h.self.with(st) == c.ID {
				h.running[c.ID.PID] = p
				continue
			}
			h.log.Warn("inherited process is no child of ours", "pid", c.ID.PID, "err", err)
			c.Exit = &Exit{Code: -1, At: time.Now()}
		}
		p.exit = *c.Exit
		close(p.exited)
	}
	return taken
}

func (h *Host) pause() Handed {
	h.mu.Lock()
	h.paused = true
	h.mu.Unlock()
	off := Handed{Files: h.given.Load()}
	if h.groups != nil {
		off.Cgroup = h.groups.handOff()
	}
	return off
}

func (h *Host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = false
	h.wakeLocked()
}

func (p *Process) inherited() Inherited {
	in := Inherited{ID: p.id, Mark: p.mark, Cgroup: p.cgroupPath()}
	if p.hasExited() {
		in.Exit = &p.exit
	}
	return in
}

func (h *Host) enableLimits() error {
	if h.groups == nil {
		return errNoCgroup
	}
	return h.groups.enableLimits()
}

func (h *Host) close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.forks.Wait()

	h.mu.Lock()
	trees := make([]*Process, 0, len(h.trees))
	for p := range h.trees {
		trees = append(trees, p)
	}
	h.mu.Unlock()

	var stuck StuckError
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, p := range trees {
		wg.Go(func() {
			if err := p.killTree(context.Background()); err != nil {
				mu.Lock()
				stuck.PIDs = append(stuck.PIDs, stuckPIDs(err, p.id.PID)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := h.endStrays(context.Background()); err != nil {
		stuck.PIDs = append(stuck.PIDs, stuckPIDs(err, 0)...)
	}
	// The reaper must outlive the last tree; the thread must outlive every
	// child, which would get its parent-death signal.
	signal.Stop(h.poke)
	h.mu.Lock()
	h.deaf = true
	close(h.poke)
	h.mu.Unlock()
	h.reaped.Wait()
	h.thread.stop()
	if h.groups != nil {
		h.groups.remove()
	}
	h.null.Close()
	if len(stuck.PIDs) > 0 {
		return &stuck
	}
	return nil
}

// wake makes the reaper look, as a SIGCHLD does.
func (h *Host) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeLocked()
}

func (h *Host) wakeLocked() {
	if h.deaf {
		return
	}
	select {
	case h.poke <- syscall.SIGCHLD:
	default: // one look that is still to come is enough
	}
}

// waitReaped returns a channel that is closed when the next orphan is reaped. Take it
// before looking, then wait on it.
func (h *Host) waitReaped() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}
