package process

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// end kills all that list finds, until it finds nothing, or ctx ends. Each round:
//
//  1. Stop what is found and look again, until there is nobody new: a process
//     that forks cannot outrun that, and nobody loses its parent yet.
//  2. Kill them all.
//  3. wait returns when one of them may have ended.
//
// list returns zombies only if those are to be waited for. What it found once is
// waited for, though it may not be recognised any more. found counts the living
// ones; left are those that were there when it gave up, with err. Where only
// such are left as may not be killed, that is a StuckError.
func end(ctx context.Context, list func() ([]stat, error), wait func([]stat) error) (found int, left []stat, err error) {
	known := map[stat]bool{} // without state and parent, see key
	look := func() ([]stat, error) {
		ps, err := list()
		if err != nil {
			return nil, err
		}
		return withKnown(ps, known)
	}
	for {
		present, err := look()
		if err != nil {
			return found, nil, err
		}
		for {
			fresh := slices.DeleteFunc(slices.Clone(present), func(st stat) bool { return !st.alive() || known[st.key()] })
			if len(fresh) == 0 {
				break
			}
			for _, st := range fresh {
				known[st.key()] = true
				found++
				sendExactly(st, unix.SIGSTOP)
			}
			if err := ctx.Err(); err != nil { // what is stopped does not stay so
				killAll(present)
				return found, present, err
			}
			if present, err = look(); err != nil {
				return found, nil, err
			}
		}
		if len(present) == 0 {
			return found, nil, nil
		}
		dying, denied := killAll(present)
		if len(dying) == 0 {
			return found, denied, &StuckError{PIDs: pidsOf(denied), Cause: unix.EPERM}
		}
		if err := wait(dying); err != nil {
			return found, present, err
		}
	}
}

// killAll kills ps. Of those denied it may not.
func killAll(ps []stat) (dying, denied []stat) {
	for _, st := range ps {
		if err := sendExactly(st, unix.SIGKILL); errors.Is(err, unix.EPERM) {
			denied = append(denied, st)
		} else {
			dying = append(dying, st)
		}
	}
	return dying, denied
}

// withKnown adds those of known that live and are not in ps: one that is exiting
// has no environment any more.
func withKnown(ps []stat, known map[stat]bool) ([]stat, error) {
	for k := range known {
		same := func(st stat) bool { return st.key() == k }
		if slices.ContainsFunc(ps, same) {
			continue
		}
		now, err := readStat(k.pid)
		if err != nil && !unseen(err) {
			return nil, err
		}
		if err == nil && now.key() == k && now.alive() {
			ps = append(ps, now)
		}
	}
	return ps, nil
}

// key is what does not change in a process's life.
func (s stat) key() stat { return stat{pid: s.pid, start: s.start} }

// waitAny waits until one of the processes has ended, children of ours or not,
// by pidfd.
func waitAny(ctx context.Context, ps []stat) error {
	var fds []unix.PollFd
	defer func() {
		for _, fd := range fds {
			unix.Close(int(fd.Fd))
		}
	}()
	for _, st := range ps[:min(len(ps), 256)] {
		fd, err := unix.PidfdOpen(st.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return os.NewSyscallError("pidfd_open", err)
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		if now, err := readStat(st.pid); err != nil || now.start != st.start || !now.alive() {
			return nil
		}
	}
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, 100) // ms, so that ctx is seen
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
	}
	return ctx.Err()
}

// endBound is end for processes that are no children of ours, with KillBound as
// limit and a StuckError beyond. A look at all processes takes its time, in which
// one may be made and its parent end: only a second look in vain counts.
func endBound(ctx context.Context, look func() ([]stat, error)) (found int, err error) {
	list := func() ([]stat, error) {
		if ps, err := look(); err != nil || len(ps) > 0 {
			return ps, err
		}
		return look()
	}
	bound, cancel := context.WithTimeout(ctx, KillBound)
	defer cancel()
	found, left, err := end(bound, list, func(ps []stat) error { return waitAny(bound, ps) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return found, &StuckError{PIDs: pidsOf(left)}
	}
	return found, err
}

// pidsOf are the numbers of processes, in order.
func pidsOf(ps []stat) []int {
	pids := make([]int, len(ps))
	for i, st := range ps {
		pids[i] = st.pid
	}
	slices.Sort(pids)
	return pids
}

// stuckPIDs are those that err names, or else pid where it is one.
func stuckPIDs(err error, pid int) []int {
	if stuck, ok := errors.AsType[*StuckError](err); ok {
		return stuck.PIDs
	}
	if pid > 0 {
		return []int{pid}
	}
	return nil
}

// living keeps those that are no zombies.
func living(ps []stat) []stat {
	return slices.DeleteFunc(ps, func(st stat) bool { return !st.alive() })
}
