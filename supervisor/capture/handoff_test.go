package capture_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// What a process writes while its log is passed on is kept, whole and in order, and so
// is what comes before and after, also within a line; and the last lines are those of
// both. Read on while the pipe is passed on, and lines are lost.
func TestLog_PassedOn(t *testing.T) {
	dir := t.TempDir()
	open := func() *capture.Log {
		l, err := capture.Open(dir, "a", 1, capture.Options{File: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	log, tail := open(), &capture.Tail{}
	w, _, err := log.Pipe(capture.Stderr, "proc_1", tail)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var want bytes.Buffer
	write := func(text string) {
		want.WriteString(text)
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	for turn := range 5 {
		write(fmt.Sprintf("line %d\nhalf", turn))
		streams, err := log.Pause(t.Context())
		if err != nil || len(streams) != 1 {
			t.Fatalf("streams %v, %v", streams, err)
		}
		write(fmt.Sprintf(" of turn %d\n", turn))
		if turn == 2 { // it is not passed on after all
			log.Resume()
			continue
		}
		next, nextTail := open(), &capture.Tail{}
		_, _ = nextTail.Write(tail.Bytes())
		// In one program a descriptor cannot be waited for twice.
		fd, err := unix.Dup(int(streams[0].FD))
		if err != nil {
			t.Fatal(err)
		}
		streams[0].FD = uintptr(fd)
		passed = append(passed, log)
		if _, err := next.Take(streams[0], nextTail); err != nil {
			t.Fatal(err)
		}
		log, tail = next, nextTail
	}
	w.Close()
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(capture.Path(dir, "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("kept\n%s\nwant\n%s", got, want.Bytes())
	}
	if got := tail.String(); !bytes.HasSuffix(want.Bytes(), []byte(got+"\n")) || len(got) < 50 {
		t.Errorf("the last lines are %q", got)
	}
}

// passed keeps logs that were passed on from being collected, with their descriptors.
var passed []*capture.Log
