package capture_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// follow follows actor w in dir and returns a function that gets the next line,
// and one that stops.
func follow(t *testing.T, dir string, n int) (next func() capture.Line, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	lines := make(chan capture.Line)
	ended := make(chan error, 1)
	go func() {
		ended <- capture.Follow(ctx, dir, capture.Query{Actor: "w", Lines: n}, func(l capture.Line) error {
			l.Text = bytes.Clone(l.Text)
			select {
			case lines <- l:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow: %v", err)
		}
	}
	return func() capture.Line {
		select {
		case l := <-lines:
			return l
		case err := <-ended:
			t.Fatalf("Follow ended: %v", err)
			return capture.Line{}
		}
	}, stop
}

// Follow shows the last lines and then every one that is written, across many
// rotations, in order. Remove the search for the next newer file and lines are
// missed.
func TestFollow_GoesAcrossRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, capture.Options{File: true, MaxSize: 2000, Keep: 1000}, nil)
	sh(t, l, `seq 1 1000`)
	drain(t, l)
	next, stop := follow(t, dir, 3)
	defer stop()
	var cmd *exec.Cmd
	for want := 998; want <= 5000; want++ {
		if want == 1001 { // the last lines are those of now: it follows
			cmd = start(t, l, `seq 1001 5000`)
		}
		line := next()
		if string(line.Text) != fmt.Sprint(want) || line.Stream != capture.Stdout || line.Process != "proc_1234" {
			t.Fatalf("line %q of %q, want %d", line.Text, line.Stream, want)
		}
	}
	cmd.Wait()
}

// Follow begins before there is anything, and sees a slot that comes later.
func TestFollow_SeesANewSlot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	next, stop := follow(t, dir, -1)
	defer stop()
	sh(t, open(t, dir, all, nil), `echo one`)
	if l := next(); string(l.Text) != "one" || l.Slot != 1 {
		t.Errorf("%+v", l)
	}
	second, err := capture.Open(dir, "w", 2, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close(context.Background()) })
	sh(t, second, `echo two >&2`)
	if l := next(); string(l.Text) != "two" || l.Slot != 2 || l.Stream != capture.Stderr {
		t.Errorf("%+v", l)
	}
}

// Bytes without index, from another writer, are shown without time or stream.
func TestFollow_ShowsWhatTheIndexDoesNotCover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := capture.Path(dir, "w", 1)
	if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, stop := follow(t, dir, -1)
	defer stop()
	if l := next(); string(l.Text) != "old" || l.Stream != "" || !l.Time.IsZero() {
		t.Errorf("%+v", l)
	}
	sh(t, open(t, dir, all, nil), `echo new`)
	if l := next(); string(l.Text) != "new" || l.Stream != capture.Stdout {
		t.Errorf("%+v", l)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, "foreign")
	if l := next(); string(l.Text) != "foreign" || l.Stream != "" {
		t.Errorf("%+v", l)
	}
}

// Two replicas' lines come merged by time; actors whose names look alike do not.
func TestLast_MergesReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := map[string]*capture.Log{}
	for _, name := range []string{"w 1", "w 2", "w.1 2", "w.1.log 1"} {
		var actor string
		var slot int
		fmt.Sscan(name, &actor, &slot)
		l, err := capture.Open(dir, actor, slot, all, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(context.Background()) })
		logs[name] = l
	}
	for i := range 6 {
		sh(t, logs[fmt.Sprintf("w %d", 1+i%2)], fmt.Sprintf("echo %d", i))
		drain(t, logs[fmt.Sprintf("w %d", 1+i%2)])
	}
	sh(t, logs["w.1 2"], "echo other")
	sh(t, logs["w.1.log 1"], "echo other")
	if got := texts(last(t, dir, 4)); got != "2\n3\n4\n5\n" {
		t.Errorf("%q", got)
	}
	if got := last(t, t.TempDir(), 4); got != nil {
		t.Errorf("%v from an empty folder", got)
	}
}
