package server_test

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// dialAs connects to path as another user. Only root can.
func dialAs(t *testing.T, path string, uid int) *peer {
	t.Helper()
	var conn net.Conn
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the user is the thread's, which ends
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		var err error
		conn, err = net.Dial("unix", path)
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return newPeer(t, conn)
}

// H2: idle connections of other users, however many users they are, take half of the room
// at most. Leave others out of fits and this fails.
func TestLimit_OthersHaveHalf(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	h := newHouseIn(t, longFolder(t, t.TempDir())) // its worker.sock lies where others get to
	h.server.Limit(8)
	for n := range 4 {
		want(t, dialAs(t, h.worker.Path(), 65534-n).ask("nothing", "{}"), "bad_request")
	}
	want(t, dialAs(t, h.worker.Path(), 60000).read(), "unavailable")
	for range 2 {
		want(t, h.shell().ask("nothing", "{}"), "bad_request")
		want(t, h.people().ask("nothing", "{}"), "bad_request")
	}
}
