package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/descriptor"
)

// busyRetries are the waits after ETXTBSY: somebody who wrote the program has
// just closed it, but a fork at that moment still holds it open until its exec.
var busyRetries = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

func (h *Host) start(ctx context.Context, s Spec) (*Process, error) {
	if err := h.beginFork(); err != nil {
		return nil, err
	}
	defer h.forks.Done()
	path, err := s.program()
	if err != nil {
		return nil, err
	}
	if (s.Memory > 0 || s.Pids > 0) && (s.Cgroup == "" || h.groups == nil || !h.groups.limited()) {
		return nil, &StartError{Path: path, Reason: "limits of memory and pids need a delegated cgroup v2 with those controllers"}
	}
	if s.Cgroup == "" || h.groups == nil {
		return h.startIn(ctx, s, path, nil)
	}
	for try := 0; ; try++ {
		l, err := h.groups.take(s.Cgroup, s.Memory, s.Pids)
		if err != nil {
			return nil, &StartError{Errno: errnoOf(err), Path: path, Reason: "its cgroup: " + err.Error()}
		}
		p, err := h.startIn(ctx, s, path, l)
		if err == nil {
			return p, nil
		}
		if !l.gone() {
			h.groups.put(l)
			return nil, err
		}
		h.groups.forget(l)
		if try == mostLeaves {
			return nil, err
		}
	}
}

// mostLeaves is how often a leaf that was removed before its child was in it is made
// anew for one start.
const mostLeaves = 3

// beginFork is paired with forks.Done; Close waits for it.
func (h *Host) beginFork() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &StartError{Reason: "the supervisor is stopping"}
	}
	h.forks.Add(1)
	return nil
}

// startIn forks on the spawner thread, and again while the program is being
// written.
func (h *Host) startIn(ctx context.Context, s Spec, path string, l *leaf) (*Process, error) {
	fds, err := h.files(s)
	if err == nil {
		err = s.giveStreams()
	}
	if err != nil {
		return nil, explain(s, path, errnoOf(err), err)
	}
	streams := len(fds)
	if l != nil {
		folder, err := l.open()
		if err != nil {
			return nil, explain(s, path, errnoOf(err), err)
		}
		defer unix.Close(folder)
		fds = append(fds, folder)
	}
	for try := 0; ; try++ {
		var p *Process
		var forkErr, untraced error
		err := h.thread.do(ctx, fds, func(fds []int) {
			p, untraced, forkErr = h.fork(s, path, fds[:streams], l, fds[streams:])
		})
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if untraced != nil {
			h.log.Warn("limit of open files is set a moment after start", "cause", untraced)
		}
		if err = errors.Join(err, forkErr); err == nil {
			return p, nil
		}
		errno := errnoOf(err)
		if errno == unix.ETXTBSY && try < len(busyRetries) {
			select {
			case <-time.After(busyRetries[try]):
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return nil, explain(s, path, errno, err)
	}
}

// fork runs on the spawner thread. From before the clone until the child is
// registered the reaper leaves unknown children alone. streams are the thread's
// numbers of the child's descriptors, cgroup of its cgroup's folder, where it has one;
// untraced is why the child could not be traced, where it was to be.
func (h *Host) fork(s Spec, path string, streams []int, l *leaf, cgroup []int) (_ *Process, untraced, _ error) {
	limit := h.childFiles(s)
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Sys: h.sysProcAttr(s, cgroup)}
	attr.Sys.Ptrace = limit != nil
	for _, fd := range streams {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if s.Umask >= 0 {
		unix.Umask(s.Umask)
		defer unix.Umask(h.thread.umask)
	}
	h.beginForking()
	pid, err := syscall.ForkExec(path, s.Argv, attr)
	if errors.Is(err, unix.EPERM) && attr.Sys.Ptrace {
		// Tracing is forbidden here (kernel.yama.ptrace_scope=3, seccomp), or
		// something else is; the second try tells.
		attr.Sys.Ptrace, untraced = false, err
		pid, err = syscall.ForkExec(path, s.Argv, attr)
	}
	if err == nil && limit != nil {
		err = limitFiles(pid, *limit, attr.Sys.Ptrace)
	}
	var st stat
	if err == nil {
		st, err = readStat(pid) // it is there: nobody has reaped it
	}
	var p *Process
	if err == nil {
		p = &Process{host: h, id: h.self.with(st), mark: s.Mark, leaf: l, exited: make(chan struct{})}
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if p != nil {
		h.running[pid] = p
		h.trees[p] = struct{}{}
	} else if pid > 0 {
		discard(pid)
	}
	h.endForkingLocked()
	return p, untraced, err
}

// beginForking has the reaper leave unknown children alone, until endForkingLocked.
func (h *Host) beginForking() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forking++
}

// endForkingLocked ends what beginForking began; whoever was left alone is looked at then.
func (h *Host) endForkingLocked() {
	h.forking--
	if h.skipped && h.forking == 0 {
		h.skipped = false
		h.wakeLocked()
	}
}

// files are the child's descriptors: index is number. Everything else is
// close-on-exec. They are made blocking, which programs expect, and ends made by
// os.Pipe are not.
func (h *Host) files(s Spec) ([]int, error) {
	ends := []*os.File{s.Stdin, s.Stdout, s.Stderr}
	if s.Channel != nil {
		ends = append(ends, s.Channel)
	}
	files := make([]int, len(ends))
	for i, f := range ends {
		if f == nil {
			files[i] = rawFd(h.null)
			continue
		}
		files[i] = rawFd(f)
		if err := unix.SetNonblock(files[i], false); err != nil {
			return nil, fmt.Errorf("descriptor %d for the child: %w", i, err)
		}
	}
	return files, nil
}

// rawFd is f's descriptor, -1 when it is closed.
func rawFd(f *os.File) int { return int(descriptor.Of(f)) }

func (h *Host) sysProcAttr(s Spec, cgroup []int) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{
		Setsid:    true, // no controlling terminal, and a group of its own
		Pdeathsig: syscall.SIGKILL,
	}
	if c := s.Credential; c != nil && !c.own() {
		sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	if len(cgroup) > 0 {
		sys.UseCgroupFD, sys.CgroupFD = true, cgroup[0]
	}
	return sys
}

// own reports whether c is what we are already and may not set anyhow.
func (c *Credential) own() bool {
	return os.Geteuid() != 0 && int(c.UID) == os.Geteuid() && int(c.GID) == os.Getegid()
}

// giveStreams makes pipes the property of the child's user, who could not open
// /dev/stdout or /dev/stderr otherwise.
func (s Spec) giveStreams() error {
	if s.Credential == nil || os.Geteuid() != 0 {
		return nil
	}
	for _, f := range []*os.File{s.Stdin, s.Stdout, s.Stderr} {
		if f == nil {
			continue
		}
		var st unix.Stat_t
		fd := rawFd(f)
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			continue
		}
		if err := unix.Fchown(fd, int(s.Credential.UID), int(s.Credential.GID)); err != nil {
			return err
		}
	}
	return nil
}

// limitFiles sets the limit of open files of pid, which asked to be traced and
// so stands still right after its exec, before its first instruction; then lets it
// run. A limit set later could come too late, and one set before the fork would
// be the supervisor's own. (A program that is setuid gets no privileges this way,
// unless the supervisor is root.)
func limitFiles(pid int, n FileLimit, traced bool) error {
	if traced && !waitTrapped(pid) {
		return nil // killed meanwhile; the reaper takes it
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n.Soft, Max: n.Hard}, nil); err != nil {
		return fmt.Errorf("limit of open files %d: %w", n.Soft, err)
	}
	if traced {
		return unix.PtraceDetach(pid)
	}
	return nil
}

// waitTrapped waits until pid stands still after its exec, or returns false
// because it ended.
func waitTrapped(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && info.Code == cldTrapped
		}
	}
}

// discard kills and takes a child that was started and is not wanted. It is
// unreaped, so its number is its own; the stop of a traced one is reported first.
func discard(pid int) {
	unix.Kill(-pid, unix.SIGKILL)
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == nil && !ws.Stopped() || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

const cldTrapped = 4 // CLD_TRAPPED of <asm-generic/siginfo.h>: stopped by ptrace

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}

func (h *Host) exec(path string, argv, env []string, keep []uintptr) error {
	if err := h.beginFork(); err != nil {
		return err
	}
	defer h.forks.Done()
	here := func(keep []uintptr) error {
		ignore(h.ignored)
		defer handle(h.ignored)
		return execHere(path, argv, env, keep)
	}
	if h.thread.lent {
		done := make(chan error)
		h.thread.work <- func() { done <- here(keep) }
		return <-done
	}
	fds := make([]int, len(keep))
	for i, fd := range keep {
		fds[i] = int(fd)
	}
	var failed error
	err := h.thread.do(context.Background(), fds, func(got []int) {
		// The thread's numbers of them are moved to those that they have in the program,
		// by which the next one knows them.
		if failed = place(got, fds); failed != nil {
			failed = fmt.Errorf("keep descriptors: %w", failed)
			return
		}
		failed = here(nil)
	})
	return errors.Join(err, failed)
}
