package powercut_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/store/powercut/lazyfs"
)

// roleEnv makes this binary one of roles. What a role has to say for people goes to
// its standard error; it succeeds by returning nil.
const roleEnv = "POWERCUT_ROLE"

var roles = map[string]func(args []string) error{
	"serve":  func(args []string) error { return lazyfs.Serve(args[0], os.Stdin, os.Stdout) },
	"script": func(args []string) error { return play(args[0], script()) },
	"after":  func(args []string) error { return play(args[0], afterwards()) },
	"eio":    playFailedSyncs,
	"full":   playFullDisk,
	"check":  checkFolders,
	"anew":   func(args []string) error { return play(args[0], []step{restore, open, reconcile}) },
	"ext4":   playUntil,
	"whole":  func(args []string) error { return play(args[0], whole()) },
	"twice":  playTwice,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func command(role string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	return c
}

// run runs a role to its end and returns what it said. killed: it ends by SIGKILL.
func run(t *testing.T, role string, args ...string) (said string, killed bool) {
	t.Helper()
	out, err := command(role, args...).CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit != nil {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			return string(out), true
		}
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", role, err, out)
	}
	return string(out), false
}

// disk is a lazy file system that is served by another process.
type disk struct {
	dir string // where it is mounted
	in  io.WriteCloser
	out *bufio.Reader
}

// mount mounts an empty lazy file system for the time of the test.
func mount(t *testing.T) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("FUSE is missing: %v", err)
	} else {
		f.Close()
	}
	d := &disk{dir: t.TempDir()}
	c := command("serve", d.dir)
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if d.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("file system: %v", err)
			_ = syscall.Unmount(d.dir, syscall.MNT_FORCE|syscall.MNT_DETACH)
		}
	})
	d.out = bufio.NewReader(out)
	if answer := d.answer(); answer != "ok" {
		t.Fatalf("mount: %s", answer)
	}
	return d
}

func (d *disk) answer() string {
	s, err := d.out.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(s)
}

// ask has the server do something (lazyfs.Serve).
func (d *disk) ask(t *testing.T, what string) {
	t.Helper()
	if _, err := fmt.Fprintln(d.in, what); err != nil {
		t.Fatal(err)
	}
	if answer := d.answer(); answer != "ok" {
		t.Fatalf("%s: %s", what, answer)
	}
}

// log returns what was done on the disk since it was mounted.
func (d *disk) log(t *testing.T) (log []lazyfs.Op) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	d.ask(t, "log "+name)
	if err := lazyfs.Load(name, &log); err != nil {
		t.Fatal(err)
	}
	return log
}

// folder is where the store is on a disk. It is created with the store.
const folder = "data"

// play makes steps in the folder on a disk, tells the disk about it, and ends as a
// process that is killed: if one fails right then, with the error on standard error.
func play(dir string, steps []step) error {
	note := func(format string, args ...any) {
		if err := lazyfs.Tell(dir, "note "+fmt.Sprintf(format, args...)); err != nil {
			fmt.Fprintln(os.Stderr, "note:", err)
		}
	}
	w := newWorld(filepath.Join(dir, folder))
	w.store.note = note
	w.acked = func(m model) {
		b, _ := json.Marshal(m)
		note("acked %s", b)
	}
	if err := resume(dir, w); err != nil {
		return err
	}
	for i, s := range steps {
		kind := "atomic"
		if s.several {
			kind = "several"
		}
		note("step %s %d %s", kind, i, s.name)
		if err := s.do(context.Background(), w); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			kill()
		}
		if w.store.wrong != nil {
			return w.store.wrong
		}
		b, err := json.Marshal(w.model)
		if err != nil {
			return err
		}
		note("end %s", b)
	}
	kill()
	return nil
}

func kill() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// modelFile is where the model of a process that was killed is handed to the next.
func modelFile(dir string) string { return dir + ".model" }

func resume(dir string, w *world) error {
	m := model{}
	err := lazyfs.Load(modelFile(dir), &m)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	maps.Copy(w.model, m)
	return err
}

// A moment is a place in a log: what must be there if the power goes right then.
type moment struct {
	expectation
	step int // -1: before the first
}

// moments returns the moment after each number of operations of log, from a disk
// that held what first says.
func moments(t *testing.T, log []lazyfs.Op, first expectation) []moment {
	t.Helper()
	parse := func(s string) model {
		m := model{}
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	all := make([]moment, 0, len(log)+1)
	now := moment{first, -1}
	at := now
	all = append(all, at)
	for i, op := range log {
		what, rest, _ := strings.Cut(op.Name, " ")
		if op.Kind != lazyfs.Note {
			what = ""
		}
		// next is the text of the next note of a kind, or another one, before one of until.
		next := func(kind, other, until string) (string, bool) {
			for _, op := range log[i+1:] {
				if op.Kind != lazyfs.Note {
					continue
				}
				if s, ok := strings.CutPrefix(op.Name, kind+" "); ok {
					return s, true
				}
				if s, ok := strings.CutPrefix(op.Name, other+" "); ok {
					return s, true
				}
				if strings.HasPrefix(op.Name, until+" ") {
					break
				}
			}
			return "", false
		}
		switch what {
		case "step":
			kind, s, _ := strings.Cut(rest, " ")
			number, _, _ := strings.Cut(s, " ")
			now.step, _ = strconv.Atoi(number)
			now.mixed = kind == "several"
			if s, ok := next("end", "end", "step"); ok {
				now.target = parse(s)
			}
		case "acked":
			now.base = parse(rest)
		case "end":
			now.base, now.target, now.mixed = parse(rest), nil, false
		case "begin":
			if s, ok := next("done", "unsynced", "begin"); ok {
				hash, _, _ := strings.Cut(s, " ")
				now.hashes = append(slices.Clip(now.hashes), hash)
			} else {
				now.hashes = nil
			}
		case "loose":
			now.hashes = nil
		case "open":
			now.hashes = []string{rest}
		case "done", "unsynced":
			var hash string
			if _, err := fmt.Sscan(rest, &hash, &now.given.Token, &now.given.Sequence); err != nil {
				t.Fatal(err)
			}
			if what == "done" { // else a cut may take it, and the unsynced ones before it (P3.12)
				now.hashes = []string{hash}
			}
		}
		all = append(all, now)
	}
	return all
}
