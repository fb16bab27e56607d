//go:build unix

package capture_test

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// H2: a log that is being written when the bound is lowered closes its files at the end of
// that, where it would have stayed open before. Have rest ask for a log that stays no more,
// and this does not end.
func TestFiles_LimitWhileWriting(t *testing.T) {
	dir := t.TempDir()
	files := capture.NewFiles(4) // two may stay open
	var logs []*capture.Log
	var disks []*os.File
	for slot := 1; slot <= 2; slot++ {
		disk := fifo(t, dir, slot)
		l := bounded(t, dir, slot, files, "idle\n")
		say(t, l, strings.Repeat("x", 200<<10)) // more than a FIFO holds: this write hangs
		logs, disks = append(logs, l), append(disks, disk)
	}
	files.Limit(1) // as 2, of which one may stay open
	for _, disk := range disks {
		go io.Copy(io.Discard, disk) // ends with the last writer, or when disk is closed
	}
	for _, l := range logs {
		if err := l.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l := bounded(t, dir, 3, files, "two\n"); l.Kept() != 4 {
		t.Errorf("after Limit %d bytes are kept", l.Kept())
	}
}

// D5, H2: a log that is closed while its write hangs closes its files when the write ends,
// and gives back its part of the bound. Remove the close in write, and this does not end.
func TestClose_DuringAWrite(t *testing.T) {
	dir := t.TempDir()
	files := capture.NewFiles(2)
	const size = 200 << 10
	for slot := 1; slot <= 2; slot++ {
		path := capture.Path(dir, "w", slot)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := capture.Open(dir, "w", slot, capture.Options{File: true, Files: files}, nil)
		if err != nil {
			t.Fatal(err)
		}
		say(t, l, strings.Repeat("x", size))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Close(over); err != context.Canceled {
			t.Fatalf("Close beside a write that hangs: %v", err)
		}
		disk, err := os.Open(path) // the disk comes back
		if err != nil {
			t.Fatal(err)
		}
		// The end comes when the log has closed the file.
		n, err := io.Copy(io.Discard, disk)
		disk.Close()
		if n != size || err != nil {
			t.Fatalf("the file got %d of %d bytes, %v", n, size, err)
		}
	}
	if l := bounded(t, dir, 3, files, "two\n"); l.Kept() != 4 {
		t.Errorf("beside logs that were closed %d bytes are kept", l.Kept())
	}
}

// fifo is a disk that hangs once it holds some output, until it is read, in the place of a slot's log.
func fifo(t *testing.T, dir string, slot int) *os.File {
	t.Helper()
	path := capture.Path(dir, "w", slot)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return disk
}
