//go:build !linux

package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A datagram is one that was received: what it says, and the descriptors that came
// with it. This system does not tell who has sent it; only the child's user can.
type datagram struct {
	notice
	ok    bool // it says something
	files []int
}

// receive takes the next datagram; done is false where there is none yet.
func (d *datagram) receive(fd int) (done bool, err error) {
	var text [maxNotice + 1]byte
	var beside [1280]byte
	n, with, _, _, err := unix.Recvmsg(fd, text[:], beside[:], unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case errors.Is(err, unix.EINTR):
		return true, nil // an empty one, and the next
	case err != nil:
		return true, fmt.Errorf("receive: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(beside[:with])
	if err != nil {
		return true, fmt.Errorf("receive: %w", err)
	}
	for i := range messages {
		if files, err := unix.ParseUnixRights(&messages[i]); err == nil {
			d.files = append(d.files, files...)
		}
	}
	if n <= maxNotice {
		d.notice, d.ok = parseNotice(text[:n])
	}
	return true, nil
}

func (d *datagram) from(*process.Process, int) error { return nil }

// answer closes what came with it.
func (d *datagram) answer() {
	for _, fd := range d.files {
		unix.Close(fd)
	}
}

func wantSender(*net.UnixConn) error { return nil }

// openToSenders lets the child's user send, and nobody else.
func openToSenders(path string, who account) error {
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if who.credential == nil {
		return nil
	}
	return os.Chown(path, int(who.credential.UID), int(who.credential.GID))
}
