package server

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the effective user at the moment of connect of who connected.
func peerUID(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	if controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
