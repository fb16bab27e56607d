package process

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxGiven is the most descriptors that one message carries (SCM_MAX_FD).
const maxGiven = 253

// A handover gives descriptors of the program to the spawner thread, which has a
// descriptor table of its own: through a pair of sockets, one end in each table. The
// number of the thread's end stays taken in the program's table, so that it means the
// same, or nothing, in both.
//
// In the thread's table stay the standard streams, that end, and what Go's runtime
// uses from any thread, its poller. It must be there before part is called, which
// opening any file of package os sees to.
type handover struct{ ours, theirs int }

func newHandover() (*handover, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connect the spawner thread: %w", err)
	}
	return &handover{fds[0], fds[1]}, nil
}

func (h *handover) close() {
	unix.Close(h.ours)
	unix.Close(h.theirs)
}

// part gives the thread that calls it a descriptor table of its own. Before there is
// one, nothing of that is done.
func (h *handover) part() error {
	keep, err := pollers()
	if err != nil {
		return fmt.Errorf("look for the descriptors of Go's runtime: %w", err)
	}
	keep = append(keep, h.theirs)
	slices.Sort(keep)
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return fmt.Errorf("give the spawner thread descriptors of its own: %w", err)
	}
	from := 3
	for _, fd := range keep {
		if fd > from {
			closeRange(from, fd-1)
		}
		from = fd + 1
	}
	closeRange(from, math.MaxInt32)
	return nil
}

// pollers are the program's descriptors of pollers, and of what wakes them.
func pollers() (fds []int, err error) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		target, err := os.Readlink(dir + "/" + e.Name())
		if err != nil || !strings.Contains(target, "[eventpoll]") && !strings.Contains(target, "[eventfd]") {
			continue
		}
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			fds = append(fds, fd)
		}
	}
	return fds, nil
}

// closeRange closes the descriptors from first to last.
func closeRange(first, last int) {
	if unix.CloseRange(uint(first), uint(last), 0) == nil {
		return
	}
	var limit unix.Rlimit // Linux before 5.9
	unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	for fd := first; fd <= last && uint64(fd) < limit.Max; fd++ {
		unix.Close(fd)
	}
}

// send gives fds, and returns how many of them it has given: so many are to be received
// even after an error. The program may close them then.
func (h *handover) send(fds []int) (sent int, err error) {
	for part := range slices.Chunk(fds, maxGiven) {
		err := error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			err = unix.Sendmsg(h.ours, []byte{1}, unix.UnixRights(part...), nil, 0)
		}
		if err != nil {
			return sent, fmt.Errorf("give descriptors to the spawner thread: %w", err)
		}
		sent += len(part)
	}
	return sent, nil
}

// receive takes n descriptors that were sent, in their order, close-on-exec. Called on
// the thread. Whatever it returns is the caller's, with an error too: then no message of
// them is left, which the next ones to be received would be taken for.
func (h *handover) receive(n int) (fds []int, err error) {
	for ; n > 0; n -= maxGiven {
		part := min(n, maxGiven)
		more, failed := h.receiveOne(part)
		fds = append(fds, more...)
		if failed == nil && len(more) != part {
			failed = unix.EMFILE // the kernel gave as many as there was room for
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("take descriptors on the spawner thread: %w", failed)
		}
	}
	return fds, err
}

func (h *handover) receiveOne(n int) ([]int, error) {
	var data [1]byte
	control := make([]byte, unix.CmsgSpace(4*n))
	for {
		_, size, _, _, err := unix.Recvmsg(h.theirs, data[:], control, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(control[:size])
		if err != nil || len(messages) == 0 {
			return nil, err
		}
		return unix.ParseUnixRights(&messages[0])
	}
}

// place moves the thread's descriptors got to the numbers want, where an exec leaves
// them open. got is what they have become, also after an error. want holds no number
// twice, and none that the thread keeps.
func place(got, want []int) error {
	holder := make(map[int]int, len(got)) // of a number: its place in got
	for i, fd := range got {
		holder[fd] = i
	}
	for i, number := range want {
		if got[i] == number {
			if _, err := unix.FcntlInt(uintptr(number), unix.F_SETFD, 0); err != nil {
				return err
			}
			continue
		}
		if other, taken := holder[number]; taken {
			away, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				return err
			}
			got[other], holder[away] = away, other
		}
		if err := unix.Dup3(got[i], number, 0); err != nil {
			return err
		}
		unix.Close(got[i])
		delete(holder, got[i])
		got[i], holder[number] = number, i
	}
	return nil
}
