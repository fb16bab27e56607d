package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func (h *Host) tended(match func(mark string) bool) (map[string]int, error) {
	all, err := snapshot()
	if err != nil {
		return nil, err
	}
	marks, err := marksIn(all, match)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for pid, mark := range marks {
		if out[mark] != 0 {
			continue
		}
		by, err := tender(all, pid)
		if err != nil {
			return nil, err
		}
		if _, left := marks[by]; by != 0 && !left { // who bears a mark is no supervisor, and may be left itself
			out[mark] = by
		}
	}
	return out, nil
}

// tender is the living supervisor, other than this program, that looks after pid: it
// listens on the socket that pid was given, and pid descends from it. 0 = there is none.
func tender(all map[int]stat, pid int) (int, error) {
	socket, ok, err := variableOf(all[pid], SocketVariable)
	if err != nil || !ok {
		return 0, err
	}
	by, err := listenerOn(socket)
	if err != nil || by == 0 || by == os.Getpid() {
		return 0, err
	}
	for range all { // not all were read at one moment: the way up may go in a circle
		if pid = all[pid].ppid; pid == by {
			return by, nil
		}
	}
	return 0, nil
}

// listenerOn is the process that listens on the socket of that path, 0 = nobody.
func listenerOn(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("ask who listens on %s: %w", path, err)
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case errors.Is(err, unix.EAGAIN): // its queue is full: somebody is there, and does not say who
		return 0, fmt.Errorf("ask who listens on %s: %w", path, err)
	case err != nil:
		return 0, nil
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, fmt.Errorf("ask who listens on %s: %w", path, err)
	}
	return int(cred.Pid), nil
}
