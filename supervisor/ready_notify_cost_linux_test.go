package supervisor

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// A socket that waits costs its goroutine and little else: its buffers are lent only
// while something is read. Hold a buffer a reader and this fails.
func TestNotifySocket_Memory(t *testing.T) {
	const sockets, most = 256, 12 << 10 // of the 20 KiB that a child may cost in all
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	folder := t.TempDir()
	before := used()
	var all []*notifySocket
	for i := range sockets {
		n, err := listenNotify(folder, uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		defer n.close()
		n.serve(&child{}, os.Getuid())
		all = append(all, n)
	}
	if each := (used() - before) / sockets; each > most {
		t.Errorf("%d bytes each, want at most %d", each, most)
	}
	for _, n := range all {
		n.close()
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d sockets left, %v", len(left), err)
	}
}

// A flood is heard at a bounded pace: whoever sends waits, and a close does not.
// Listen without rest and this fails.
func TestNotifySocket_FloodIsPaced(t *testing.T) {
	n, err := listenNotify(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	n.serve(&child{}, -1)
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(noticesWithin / 2))
	sent := 0
	for ; sent < 100*noticesMost; sent++ {
		if _, err := conn.Write([]byte{0}); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
	}
	if sent < noticesMost || sent > 4*noticesMost {
		t.Errorf("%d of a flood were taken, want about %d", sent, noticesMost)
	}
	began := time.Now()
	n.close()
	if took := time.Since(began); took > noticesWithin/4 {
		t.Errorf("close took %v", took)
	}
}
