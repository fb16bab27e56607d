package capture_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// cutRole makes this binary the process whose power is cut.
const cutRole = "CAPTURE_CUT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(cutRole); dir != "" {
		if err := writeUntilCut(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var small = capture.Options{File: true, MaxSize: 64 << 10, Keep: 4}

// numbered is the nth line that the process writes.
func numbered(n int) string { return fmt.Sprintf("line %07d %s\n", n, strings.Repeat("x", 80)) }

// writeUntilCut logs lines until there were many rotations, says so, and waits for
// its end.
func writeUntilCut(dir string) error {
	l, err := capture.Open(dir, "w", 1, small, nil)
	if err != nil {
		return err
	}
	l.Patient(time.Hour)
	w, _, err := l.Pipe(capture.Stdout, "p")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for n := range 9000 {
		if _, err := out.WriteString(numbered(n)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := l.Drain(context.Background()); err != nil {
		return err
	}
	if l.Lost() != 0 {
		return fmt.Errorf("%d bytes are lost: %w", l.Lost(), l.Err())
	}
	fmt.Println("written")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The power is cut on a journaling file system right after many rotations. Every line
// of the files before the current one and the one rotated last is there, once, in
// order, and with its time; and the log goes on. Leave the sync of the log out of
// settle, or the wait for it out of rotate, and this fails.
func TestLog_PowerCutAfterRotation(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 32<<20); err != nil {
		t.Fatal(err)
	}
	try := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	try("mkfs.ext4", "-q", "-F", image)
	try("mount", "-o", "loop", image, dir)
	logs := filepath.Join(dir, "logs")
	first, last := cutPower(t, dir, logs)
	// Of a copy: whoever has copied the mounts meanwhile still has the one that was cut.
	try("cp", "--sparse=always", image, image+".2")
	try("mount", "-o", "loop", image+".2", dir)
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()

	next := -1
	emit := func(line capture.Line) error {
		n, ok := number(string(line.Text))
		switch {
		case next > last:
			return nil // what came after that may be there or not
		case !ok || next >= 0 && n != next || next < 0 && n > first:
			return fmt.Errorf("line %d was to come, and %q came", max(next, first), line.Text)
		case line.Time.IsZero() || line.Stream != capture.Stdout || line.Process != "p":
			return fmt.Errorf("line %d is of %s, %q and %q", n, line.Time, line.Stream, line.Process)
		}
		next = n + 1
		return nil
	}
	if err := capture.Last(logs, capture.Query{Actor: "w", Lines: -1}, emit); err != nil {
		t.Error(err)
	}
	if next <= last {
		t.Errorf("the lines end before %d; there were %d to %d in whole files", next, first, last)
	}
	l, err := capture.Open(logs, "w", 1, small, nil)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, l, "echo after the cut >&2")
	drain(t, l)
	var end capture.Line
	err = capture.Last(logs, capture.Query{Actor: "w", Lines: 1}, func(line capture.Line) error {
		end = line
		end.Text = append([]byte(nil), line.Text...)
		return nil
	})
	if err != nil || !strings.HasSuffix(string(end.Text), "after the cut") || end.Stream != capture.Stderr || end.Time.IsZero() {
		t.Errorf("the last line is %q of %q at %s, %v", end.Text, end.Stream, end.Time, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// cutPower has a process fill the log in logs, on the file system mounted on dir,
// cuts the power, and unmounts. It returns the first and the last line that were in
// files which had been rotated at least twice.
func cutPower(t *testing.T, dir, logs string) (first, last int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), cutRole+"="+logs, "GORACE=atexit_sleep_ms=0")
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = bufio.NewReader(out).ReadBytes('\n')
	path := capture.Path(logs, "w", 1)
	if err == nil {
		first, _, err = ends(path + "." + strconv.Itoa(small.Keep))
	}
	if err == nil {
		_, last, err = ends(path + ".2")
	}
	if e := shutdown(dir); err == nil {
		err = e
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if e := unix.Unmount(dir, 0); err == nil {
		err = e
	}
	if err != nil {
		t.Fatal(err)
	}
	return first, last
}

// ends are the numbers of the first and the last line of a file.
func ends(path string) (first, last int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	first, one := number(lines[0])
	last, other := number(lines[len(lines)-1])
	if !one || !other {
		return 0, 0, fmt.Errorf("%s begins with %q and ends with %q", path, lines[0], lines[len(lines)-1])
	}
	return first, last, nil
}

func number(line string) (n int, ok bool) {
	word, _, _ := strings.Cut(strings.TrimPrefix(line, "line "), " ")
	n, err := strconv.Atoi(word)
	return n, err == nil && line+"\n" == numbered(n)
}

// shutdown is the power cut of ext4: nothing more is written, not even the journal.
func shutdown(dir string) error {
	const ext4Shutdown, withoutFlush = 0x8004587d, 2
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), ext4Shutdown, withoutFlush)
}
