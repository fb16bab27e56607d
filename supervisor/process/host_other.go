//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Host owns the children of this program. Make it with [NewHost].
//
// On this system a tree is a process group: a descendant that leaves the group
// is out of sight. There is no parent-death signal: children outlive a killed
// supervisor, and the next one cannot prove who they are, so it kills none of
// them (see EndLeftover). Their writes are fenced all the same.
type Host struct {
	log  *slog.Logger
	null *os.File
	poke chan os.Signal
	wg   sync.WaitGroup // the reaper

	fork sync.Mutex // held while a child is made, for the umask is the program's

	mu      sync.Mutex
	running map[int]*Process // mu guards; by PID, until reaped
	closed  bool             // mu guards
	deaf    bool             // mu guards; poke is closed
}

// A Process is one child and its process group.
type Process struct {
	host   *Host
	id     Identity
	exited chan struct{}
	exit   Exit // written before exited is closed
}

// groupCheck is how often a process group without its leader is looked at: this
// system reports the end of a process to its parent only.
const groupCheck = 50 * time.Millisecond

var errOnlyLinux = errors.New("only on Linux")

func newHost(log *slog.Logger, main *Thread, _ Handed) (*Host, []*Process, error) {
	if main != nil {
		return nil, nil, fmt.Errorf("take over children: %w", errOnlyLinux)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	h := &Host{log: log, null: null, poke: make(chan os.Signal, 1), running: map[int]*Process{}}
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal), syscall.SIGHUP) // children get the default
	}
	signal.Notify(h.poke, syscall.SIGCHLD)
	h.wg.Go(func() {
		for range h.poke {
			h.reap()
		}
	})
	h.wake()
	return h, nil, nil
}

// raiseFiles can only say what package os has made of the limit already: the hard one.
func (h *Host) raiseFiles(n uint64) (limit uint64, err error) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil || own.Cur >= n {
		return own.Cur, err
	}
	return own.Cur, unix.EPERM
}

func (h *Host) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deaf {
		return
	}
	select {
	case h.poke <- syscall.SIGCHLD:
	default:
	}
}

// reap takes our own children, by number, and no others.
func (h *Host) reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, p := range h.running {
		var ws unix.WaitStatus
		if got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil); err != nil || got != pid {
			continue
		}
		delete(h.running, pid)
		p.exit = Exit{At: time.Now(), Code: ws.ExitStatus()}
		if ws.Signaled() {
			p.exit.Code, p.exit.Signal, p.exit.Core = -1, ws.Signal(), ws.CoreDump()
		}
		close(p.exited)
	}
}

func (h *Host) start(ctx context.Context, s Spec) (*Process, error) {
	path, err := s.program()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Memory > 0 || s.Pids > 0:
		return nil, &StartError{Path: path, Reason: "limits of memory and pids work only on Linux"}
	case s.NoFile > 0:
		return nil, &StartError{Path: path, Reason: "a limit of open files works only on Linux"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if c := s.Credential; c != nil && (os.Geteuid() == 0 || int(c.UID) != os.Geteuid()) {
		sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	files := make([]uintptr, 0, 4)
	for _, f := range []*os.File{s.Stdin, s.Stdout, s.Stderr} {
		if f == nil {
			f = h.null
		}
		files = append(files, f.Fd())
	}
	if s.Channel != nil {
		files = append(files, s.Channel.Fd())
	}
	h.fork.Lock()
	defer h.fork.Unlock()
	if s.Umask >= 0 {
		defer unix.Umask(unix.Umask(s.Umask))
	}
	h.mu.Lock() // the reaper looks at registered children only
	defer h.mu.Unlock()
	if h.closed {
		return nil, &StartError{Path: path, Reason: "the supervisor is stopping"}
	}
	pid, err := syscall.ForkExec(path, s.Argv, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files, Sys: sys})
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		return nil, explain(s, path, errno, err)
	}
	p := &Process{host: h, id: Identity{PID: pid}, exited: make(chan struct{})}
	h.running[pid] = p
	select {
	case h.poke <- syscall.SIGCHLD: // it may have ended before it was registered
	default:
	}
	return p, nil
}

func (h *Host) enableLimits() error { return fmt.Errorf("limits of memory and pids: %w", errOnlyLinux) }

// endLeftover kills nothing: a number proves nothing here.
func (h *Host) endLeftover(context.Context, Identity, string, string) (int, error) { return 0, nil }

func (h *Host) tended(func(string) bool) (map[string]int, error) { return nil, nil }

func (h *Host) endMarked(context.Context, func(string) bool) (int, error) { return 0, nil }

func (h *Host) exec(path string, _, _ []string, _ []uintptr) error {
	return execHere(path, nil, nil, nil)
}

func execHere(path string, _, _ []string, _ []uintptr) error {
	return fmt.Errorf("execute %s: %w", path, errOnlyLinux)
}

func (h *Host) pause() Handed           { return Handed{} }
func (h *Host) resume()                 {}
func (p *Process) inherited() Inherited { return Inherited{ID: p.id} }

func (h *Host) close() error {
	h.mu.Lock()
	h.closed = true
	ps := make([]*Process, 0, len(h.running))
	for _, p := range h.running {
		ps = append(ps, p)
	}
	h.mu.Unlock()
	var stuck StuckError
	for _, p := range ps {
		if err := p.killTree(context.Background()); err != nil {
			stuck.PIDs = append(stuck.PIDs, p.id.PID)
		}
	}
	signal.Stop(h.poke)
	h.mu.Lock()
	if !h.deaf {
		h.deaf = true
		close(h.poke)
	}
	h.mu.Unlock()
	h.wg.Wait()
	h.null.Close()
	if len(stuck.PIDs) > 0 {
		return &stuck
	}
	return nil
}

func (p *Process) cgroupPath() string { return "" }

func (p *Process) signal(sig syscall.Signal, resume bool) error {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	err := unix.Kill(-p.id.PID, sig)
	if err == nil && resume {
		err = unix.Kill(-p.id.PID, unix.SIGCONT)
	}
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) { // EPERM: only zombies are left
		return nil
	}
	return err
}

func (p *Process) treeGone() bool {
	select {
	case <-p.exited:
	default:
		return false
	}
	return unix.Kill(-p.id.PID, 0) != nil
}

// ownsNow knows only the child itself and its group: its number is its own until it
// is reaped.
func (p *Process) ownsNow(pid int) (owns, known bool) {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.host.running[p.id.PID] != p {
		return false, unix.Kill(pid, 0) == nil
	}
	group, err := unix.Getpgid(pid)
	return err == nil && group == p.id.PID, err == nil
}

func (p *Process) waitTree(ctx context.Context) error {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return ctx.Err()
	}
	for !p.treeGone() {
		select {
		case <-time.After(groupCheck):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *Process) killTree(ctx context.Context) error {
	if p.treeGone() {
		return nil
	}
	if err := p.signal(unix.SIGKILL, false); err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(ctx, KillBound)
	defer cancel()
	err := p.waitTree(bound)
	if err != nil && ctx.Err() == nil {
		return &StuckError{PIDs: []int{p.id.PID}}
	}
	return err
}
