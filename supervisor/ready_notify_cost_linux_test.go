package supervisor

import (
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A socket that waits costs its goroutine and little else: its buffers are lent only
// while something is read. Hold a buffer a reader and this fails.
func TestNotifySocket_Memory(t *testing.T) {
	const sockets, most = 256, 12 << 10 // of the 20 KiB that a child may cost in all
	used := func() int64 {
		runtime.GC()
		runtime.GC() // what a pool lets go of, and what had a finalizer
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
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
	// A reader that has not had its first look yet, or has it just now, holds a buffer, and
	// nothing tells when the last of them waits.
	each := (used() - before) / sockets
	for limit := time.Now().Add(time.Minute); each > most && time.Now().Before(limit); {
		each = (used() - before) / sockets
	}
	if each > most {
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
	queue, err := os.ReadFile("/proc/sys/net/unix/max_dgram_qlen")
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := strconv.Atoi(strings.TrimSpace(string(queue)))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	conn.SetWriteDeadline(began.Add(2 * time.Minute))
	for range 3*noticesMost + waiting { // so that two seconds have to pass
		if _, err := conn.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < noticesWithin*3/2 {
		t.Errorf("a flood was taken within %s", took)
	}
	n.close()
	if n.rest(time.Hour) {
		t.Error("it rests though it is closed")
	}
}
