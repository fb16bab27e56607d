package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

var ctx = context.Background()

// childEnv asks this binary to be a process of its own that uses a store: its
// value is the role, its arguments the role's.
const childEnv = "BOLT_TEST_CHILD"

// roles are what a child can be. A role that returns has succeeded.
var roles = map[string]func(args []string){
	"traffic": traffic,
	"hold":    hold,
	"die":     die,
	"limited": limited,
	"replace": replace,
	"narrow":  narrow,
	"wear":    wear,
	"serve":   serveAs,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		roles[role](os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a running role.
type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
	in  io.WriteCloser
}

func start(t *testing.T, role string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, bufio.NewReader(out), in}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			c.kill()
		}
	})
	return c
}

// line returns the next line that the child prints, "" at the end.
func (c *child) line() string {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return "" // Killed while it wrote: not a line.
	}
	return strings.TrimSpace(s)
}

// kill kills the child and returns what it still printed. It is reaped.
func (c *child) kill() (rest []string) {
	c.cmd.Process.Signal(syscall.SIGKILL)
	for s := c.line(); s != ""; s = c.line() {
		rest = append(rest, s)
	}
	c.cmd.Wait()
	return rest
}

// wait waits for the child to end by itself.
func (c *child) wait() error { return c.cmd.Wait() }

func suicide() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}

// exitOn ends a child with the reason on stderr.
func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func open(t testing.TB, dir string, o bolt.Options) *bolt.DB {
	t.Helper()
	db, err := bolt.Open(dir, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return db
}

func closeStore(t testing.TB, db *bolt.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func update(t testing.TB, db *bolt.DB, fn func(store.Tx)) {
	t.Helper()
	if err := db.Update(ctx, func(tx store.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func view(t testing.TB, db *bolt.DB, fn func(store.Reader)) {
	t.Helper()
	if err := db.View(ctx, func(r store.Reader) error { fn(r); return nil }); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// mustBeSound fails the test if the store finds damage in itself.
func mustBeSound(t testing.TB, db *bolt.DB) {
	t.Helper()
	if err := db.Check(ctx, func(problem error) bool {
		t.Errorf("check: %v", problem)
		return true
	}); err != nil {
		t.Errorf("check: %v", err)
	}
}

// memoryDir is t.TempDir in memory, where there is such a place: for tests that
// open very many stores and ask nothing of a disk.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "bolt-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
