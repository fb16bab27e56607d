package process

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reap takes every child that ended, for as long as the Host is open. There is
// no ticker: the channel holds one wake-up, so a SIGCHLD that comes while we look
// makes us look once more.
func (h *Host) reap() {
	for range h.poke {
		h.reapAll()
	}
}

// reapAll peeks at one ended child after the other, and takes it if it is ours.
// Nothing is ever taken by wait4(-1), which would steal the exit status of
// children that package os waits for.
func (h *Host) reapAll() {
	for {
		pid := peek(unix.P_ALL, 0)
		if pid == 0 {
			return
		}
		if !h.take(pid) {
			// The same one would be shown again and hide the rest.
			h.takeBehind()
			return
		}
	}
}

// peek returns a child that ended, without taking it, or 0.
func peek(idType, id int) int {
	for {
		var info unix.Siginfo
		err := unix.Waitid(idType, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == nil {
			return siginfoPID(&info)
		}
		if !errors.Is(err, unix.EINTR) {
			return 0 // ECHILD
		}
	}
}

// siginfoPID is si_pid: after si_signo, si_errno and si_code, and where pointers
// have 8 bytes after 4 bytes of padding.
func siginfoPID(info *unix.Siginfo) int {
	offset := uintptr(12)
	if unsafe.Sizeof(uintptr(0)) == 8 {
		offset = 16
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}

// take reaps pid, which has ended, if it is a registered child or an orphan.
// What is neither, or cannot be told yet, is left, and take returns false.
func (h *Host) take(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused {
		return false
	}
	p := h.running[pid]
	if p == nil {
		if h.forking > 0 {
			// Perhaps the child of a fork that is about to be registered.
			h.skipped = true
			return false
		}
		if h.foreign(pid) {
			return false
		}
	}
	var ws unix.WaitStatus
	got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
	if err != nil || got != pid {
		return false
	}
	if p != nil {
		delete(h.running, pid)
		p.exit = exitOf(ws)
		if p.leaf != nil && h.groups.limited() {
			p.exit.Starved = p.leaf.sawOOM()
		}
		close(p.exited)
	}
	delete(h.marks, pid)
	if p == nil && h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
	return true
}

func exitOf(ws unix.WaitStatus) Exit {
	e := Exit{At: time.Now(), Code: ws.ExitStatus()}
	if ws.Signaled() {
		e.Code, e.Signal, e.Core = -1, ws.Signal(), ws.CoreDump()
	}
	return e
}

// takeBehind takes what ended behind a child that is not ours to take.
func (h *Host) takeBehind() {
	h.mu.Lock()
	pids := make([]int, 0, len(h.running))
	for pid := range h.running {
		pids = append(pids, pid)
	}
	h.mu.Unlock()
	for _, pid := range pids {
		if peek(unix.P_PID, pid) == pid {
			h.take(pid)
		}
	}
	orphans, err := h.orphans()
	if err != nil {
		h.log.Warn("ended orphans are left until the next child ends", "err", err)
	}
	for _, pid := range orphans {
		if peek(unix.P_PID, pid) == pid {
			h.take(pid)
		}
	}
}

// foreign reports whether pid, an unregistered child of this program, was made
// by other code of it, so that its exit status is not ours to take.
//
// What package os starts has a pidfd from the moment of the clone until its Wait
// or Release, so a child to which no descriptor of ours refers is an orphan. A
// session that one of our children leads spares the search. Where package os
// knows no pidfd (Linux before 5.4), what is in this program's own session is
// taken for its child: none of ours can be in it.
func (h *Host) foreign(pid int) bool {
	st, err := readStat(pid)
	if err != nil {
		return true // gone: somebody else took it
	}
	if h.leads(st.session) {
		return false
	}
	if !h.pidfds {
		return st.session == h.session
	}
	return holdsPidfd(pid)
}

// leads reports whether a child whose tree is not known to be gone leads, or
// led, the session.
func (h *Host) leads(session int) bool {
	if h.running[session] != nil {
		return true
	}
	for p := range h.trees {
		if p.id.PID == session {
			return true
		}
	}
	return false
}

// holdsPidfd reports whether a descriptor of this program is a pidfd of pid.
func holdsPidfd(pid int) bool {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return true // cannot tell: leave it
	}
	want := "\nPid:\t" + strconv.Itoa(pid) + "\n"
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.Contains(target, "pidfd") {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err == nil && strings.Contains(string(info), want) {
			return true
		}
	}
	return false
}

// orphans are our direct children, zombies too, that Start did not make: what
// came to us as subreaper, and perhaps what other code made on the main thread.
func (h *Host) orphans() ([]int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := h.look()
	if err != nil {
		return nil, err
	}
	return h.orphansLocked(f)
}

// orphansLocked misses none while mu is held: only the reaper takes orphans
// away, under mu, and one that comes while we read has a parent that we see.
func (h *Host) orphansLocked(f family) ([]int, error) {
	adopted, err := f.adopted()
	var out []int
	for _, pid := range adopted {
		if h.running[pid] == nil {
			out = append(out, pid)
		}
	}
	return out, err
}
