package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A datagram is one that was received: what it says, who the kernel says has sent
// it, and the descriptors that came with it.
type datagram struct {
	notice
	ok    bool // it says something
	creds *unix.Ucred
	files []int
}

// received are buffers: a reader holds one only while it reads.
var received = sync.Pool{New: func() any {
	return &struct {
		text   [maxNotice + 1]byte
		beside [1280]byte // credentials, and as many descriptors as the kernel sends
	}{}
}}

// receive takes the next datagram; done is false where there is none yet.
func (d *datagram) receive(fd int) (done bool, err error) {
	b := received.Get().(*struct {
		text   [maxNotice + 1]byte
		beside [1280]byte
	})
	defer received.Put(b)
	n, beside, _, _, err := unix.Recvmsg(fd, b.text[:], b.beside[:], unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case errors.Is(err, unix.EINTR):
		return true, nil // an empty one, and the next
	case err != nil:
		return true, fmt.Errorf("receive: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(b.beside[:beside])
	if err != nil {
		return true, fmt.Errorf("receive: %w", err)
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			d.creds = cred
		} else if files, err := unix.ParseUnixRights(&messages[i]); err == nil {
			d.files = append(d.files, files...)
		}
	}
	if n <= maxNotice {
		d.notice, d.ok = parseNotice(b.text[:n])
	}
	return true, nil
}

// from returns nil where the sender is a process of p's tree. One that has ended
// meanwhile can no longer be asked where it belongs: then it is believed if it was
// the child's own user, who could act for the child anyhow.
func (d *datagram) from(p *process.Process, uid int) error {
	if d.creds == nil {
		return errors.New("nobody knows who has sent it")
	}
	pid := int(d.creds.Pid)
	if pid == 0 {
		return errors.New("it comes from another pid namespace")
	}
	owns, known := p.Owns(pid)
	if owns || !known && int(d.creds.Uid) == uid {
		return nil
	}
	return fmt.Errorf("process %d of user %d is none of the actor's", pid, d.creds.Uid)
}

// answer closes what came with it.
func (d *datagram) answer() {
	for _, fd := range d.files {
		unix.Close(fd)
	}
}

// wantSender has the kernel say who sends.
func wantSender(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(err, failed)
}

// openToSenders lets the child's user send, and everybody where that is root, for
// its processes may change their user. Who does not belong to the tree is not
// heeded; who may not send cannot get in the way either.
func openToSenders(path string, who account) error {
	if who.uid() == 0 {
		return os.Chmod(path, 0o666)
	}
	if err := os.Chmod(path, 0o600); err != nil || who.credential == nil {
		return err
	}
	return os.Chown(path, int(who.credential.UID), int(who.credential.GID))
}
