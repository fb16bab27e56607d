package capture_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// H2: of many logs only so many have their files open at one time, and all of them keep
// every byte. Have rest close nothing, and this does not end.
func TestFiles_Bound(t *testing.T) {
	const logs, most, lines = 40, 6, 20
	dir := t.TempDir()
	files := capture.NewFiles(most)
	var all []*capture.Log
	var ends []*os.File
	for n := range logs {
		l, err := capture.Open(dir, "w", n+1, capture.Options{File: true, MaxSize: 1 << 20, Files: files}, nil)
		if err != nil {
			t.Fatal(err)
		}
		end, _, err := l.Pipe(capture.Stdout, "p")
		if err != nil {
			t.Fatal(err)
		}
		all, ends = append(all, l), append(ends, end)
	}
	for line := range lines {
		for n, end := range ends {
			fmt.Fprintf(end, "line %d of %d\n", line, n+1)
		}
	}
	for n, l := range all {
		ends[n].Close()
		if err := l.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.Lost() != 0 {
			t.Errorf("%d bytes of %d are lost", l.Lost(), n+1)
		}
	}
	if open := openFiles(t, dir); open > most*2/2 {
		t.Errorf("%d files are open while nothing is written", open)
	}
	for n, l := range all {
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		names, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("w.%d.log*", n+1)))
		for _, name := range names {
			if !strings.HasSuffix(name, ".idx") {
				b, _ := os.ReadFile(name)
				got.Write(b)
			}
		}
		if got := strings.Count(got.String(), "\n"); got != lines {
			t.Errorf("%d has %d lines", n+1, got)
		}
	}
	if open := openFiles(t, dir); open > 0 {
		t.Errorf("%d files are open after all", open)
	}
}

// H2: a bound that is lowered below the logs that stay open with nothing to write closes
// the surplus, so that another log finds room. Have Limit call restAgain for none, and this
// does not end.
func TestFiles_LimitClosesTheIdle(t *testing.T) {
	const logs = 20
	dir := t.TempDir()
	files := capture.NewFiles(2 * logs)
	for n := range logs {
		bounded(t, dir, n+1, files, "one\n")
	}
	if open := openFiles(t, dir); open != 2*logs {
		t.Fatalf("%d files are open of %d idle logs", open, logs)
	}
	files.Limit(1) // as 2, of which one may stay open
	l := bounded(t, dir, logs+1, files, "two\n")
	if l.Kept() != 4 || l.Lost() != 0 {
		t.Errorf("after Limit %d bytes are kept, %d lost", l.Kept(), l.Lost())
	}
	if open := openFiles(t, dir); open != 2 {
		t.Errorf("%d files are open with a bound of one idle log", open)
	}
}

// bounded is a log that has kept text, and rests.
func bounded(t *testing.T, dir string, slot int, files *capture.Files, text string) *capture.Log {
	t.Helper()
	l, err := capture.Open(dir, "w", slot, capture.Options{File: true, Files: files}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	say(t, l, text)
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// say gives text to l through a pipe of its own, and returns once l has it in its queue.
func say(t *testing.T, l *capture.Log, text string) {
	t.Helper()
	end, done, err := l.Pipe(capture.Stdout, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(end, text); err != nil {
		t.Fatal(err)
	}
	end.Close()
	<-done
}

// openFiles counts the descriptors of files in dir.
func openFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	for _, fd := range fds {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(path, dir+"/") {
			n++
		}
	}
	return n
}
