package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever waits for what may never happen ends once nobody reads what it writes, silently
// and as by its next line: `sovereign logs up -f | grep -m1 ready` ends. Take endWithReader
// from one of them, and this waits until the patience below is over, and fails.
func TestFollowers_EndWithTheirReader(t *testing.T) {
	f := newFollowable(t)
	f.supervised(t)
	if err := os.WriteFile(filepath.Join(f.dir, "batch.jsonl"), []byte(`{"to": "idle"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{ // but for the status, nothing is written before something happens
		{"logs", "up", "--follow", "--lines", "0"}, {"events", "--follow", "--lines", "0"}, {"inbox", "--follow", "--state", "DEAD"},
		{"status", "--watch", "--json"}, {"send", "idle", "x", "--wait"}, {"send", "--batch", "batch.jsonl", "--wait"},
	} {
		for name, open := range map[string]func(*testing.T) (reader, stdout *os.File){"pipe": pipeTo, "socket": socketTo} {
			reader, stdout := open(t)
			cmd := f.command(args...)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = stdout, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = stdout.Close()
			patience := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			if args[0] == "status" {
				if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			_ = reader.Close() // at whatever point: before it waits, too
			endedBy(t, cmd, syscall.SIGPIPE)
			patience.Stop()
			if said.Len() > 0 {
				t.Errorf("%v to a %s said %q", args, name, said.String())
			}
		}
	}
}

func pipeTo(t *testing.T) (reader, stdout *os.File) {
	t.Helper()
	reader, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return reader, stdout
}

func socketTo(t *testing.T) (reader, stdout *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(pair[0]), "reader"), os.NewFile(uintptr(pair[1]), "stdout")
}

// A reader that is there keeps none from going on, nor one that has gone once what was
// waited for has come. Have goneReader not look whose end is gone, and this fails.
func TestGoneReader(t *testing.T) {
	r, w := pipeTo(t)
	defer r.Close()
	stopping, stop := pipeTo(t)
	_ = stop.Close()
	if goneReader(int(w.Fd()), int(stopping.Fd())) {
		t.Error("a reader that is there is gone")
	}
	_ = w.Close()
	_ = stopping.Close()
	endWithReader(w)() // a pipe that is not the standard output, and closed
	endWithReader(io.Discard)()
}
