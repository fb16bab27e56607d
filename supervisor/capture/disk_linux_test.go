package capture_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// G1, G2: a disk that hangs, here a FIFO that nobody opens in the place of the file,
// holds a child up for no longer than MaxBlock, once. What is lost is counted.
// Remove the bound of the wait and this hangs.
func TestLog_HungDiskDoesNotBlockTheChild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := capture.Path(dir, "w", 1)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir, all, nil)
	const size = 20 << 20
	began := time.Now()
	sh(t, l, `head -c 20971520 /dev/zero; echo end >&2`)
	if d := time.Since(began); d > time.Minute {
		t.Errorf("the child took %v", d)
	}
	// G2: meanwhile another slot's output is kept as ever.
	other := t.TempDir()
	neighbour := open(t, other, all, nil)
	sh(t, neighbour, `echo fine`)
	drain(t, neighbour)
	if got := read(t, other); got != "fine\n" {
		t.Errorf("the neighbour's file holds %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.Drain(ctx); err != context.DeadlineExceeded {
		t.Errorf("Drain beside a hung disk: %v", err)
	}
	lost := l.Lost()
	if lost < size-(3<<20) || lost > size+4 {
		t.Errorf("lost %d of %d", lost, size)
	}
	f, err := os.OpenFile(path, os.O_RDONLY, 0) // the disk comes back
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan int64)
	go func() {
		n, _ := f.WriteTo(counter{})
		got <- n
	}()
	drain(t, l)
	lost = l.Lost()
	l.Close(t.Context())
	if n := <-got; n < size+4-lost {
		t.Errorf("%d bytes arrived and %d were lost of %d", n, lost, size+4)
	}
}

type counter struct{}

func (counter) Write(p []byte) (int, error) { return len(p), nil }

// G1: a full disk costs bytes, which are counted and noted once there is room.
func TestLog_FullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if out, err := exec.Command("head", "-c", "40000", "/dev/zero").Output(); err != nil || os.WriteFile(ballast, out, 0o600) != nil {
		t.Fatal(err)
	}
	l := open(t, dir, all, nil)
	sh(t, l, `head -c 1000000 /dev/zero | tr '\0' x; echo`)
	drain(t, l)
	kept := int64(len(read(t, dir)))
	if l.Err() == nil || l.Lost()+kept != 1000001 {
		t.Errorf("%d kept and %d lost of 1000001, %v", kept, l.Lost(), l.Err())
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	sh(t, l, `echo after`)
	drain(t, l)
	if got := read(t, dir)[kept:]; !strings.HasPrefix(got, "[sovereign: ") || !strings.Contains(got, "no space left on device]\nafter\n") {
		t.Errorf("%q", got)
	}
}

// An idle pipe costs no thread, little memory, and nothing after its end (D5).
func TestPipe_ThousandsCostNothing(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, capture.Options{}, nil)
	fds := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(e)
	}
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // what a pool lets go of: each reader has borrowed a buffer for its first look
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	// Memory: a thousand children with two pipes each.
	without := inUse()
	var idle []*os.File
	for range 2000 {
		idle = append(idle, pipe(t, l, capture.Stdout))
	}
	// One that has not had its first look yet, or has it just now, is not idle: it holds a
	// buffer, and nothing tells when the last of them waits.
	const most = 8 << 10
	perPipe := (inUse() - without) / 2000
	for limit := time.Now().Add(time.Minute); perPipe > most && time.Now().Before(limit); {
		perPipe = (inUse() - without) / 2000
	}
	t.Logf("%d bytes for an idle pipe", perPipe)
	if perPipe > most {
		t.Errorf("an idle pipe takes %d bytes", perPipe)
	}
	for _, w := range idle {
		w.Close()
	}
	drain(t, l)

	before := fds()
	for range 10 {
		var ends []*os.File
		for range 500 {
			ends = append(ends, pipe(t, l, capture.Stdout))
		}
		for _, w := range ends {
			w.Close()
		}
		drain(t, l)
	}
	if after := fds(); after > before {
		t.Errorf("%d descriptors, then %d", before, after)
	}
}
