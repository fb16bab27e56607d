package server_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// TestMain lets the test binary be another process: with SOVEREIGN_TEST_DIAL set a
// client that connects there and prints what it is told, with
// SOVEREIGN_TEST_WORKER a worker.
func TestMain(m *testing.M) {
	if path := os.Getenv("SOVEREIGN_TEST_DIAL"); path != "" {
		os.Exit(dialAndPrint(path, os.Getenv("SOVEREIGN_TEST_LINE")))
	}
	if os.Getenv("SOVEREIGN_TEST_WORKER") != "" {
		os.Exit(workerMain())
	}
	os.Exit(m.Run())
}

func dialAndPrint(path, line string) int {
	conn, err := net.Dial("unix", path) // as any program does, without our tricks
	if err != nil {
		os.Stdout.WriteString("dial: " + err.Error())
		return 1
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(line + "\n")); err != nil && !errors.Is(err, syscall.EPIPE) {
		os.Stdout.WriteString("write: " + err.Error())
		return 1
	}
	buf := make([]byte, 1<<16)
	n, err := conn.Read(buf)
	os.Stdout.Write(buf[:n])
	if err != nil {
		return 1
	}
	return 0
}

// asNobody runs this test binary as user 65534 against a socket.
func asNobody(t *testing.T, path, line string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	// The binary lies where that user cannot look; it is passed as an open file.
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip("needs /proc")
	}
	defer exe.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Dir = "/"
	cmd.Env = []string{"SOVEREIGN_TEST_DIAL=" + path, "SOVEREIGN_TEST_LINE=" + line, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out)
}

// longFolder is a folder whose path alone exceeds a socket address.
func longFolder(t *testing.T, base string) string {
	t.Helper()
	data := base
	for len(data) < 200 {
		data = filepath.Join(data, strings.Repeat("d", 40))
	}
	return data
}

// K1: a store at any depth can be served and reached, and the path that workers
// are given can be connected to as it is.
func TestSockets_DeepFolder(t *testing.T) {
	h := newHouseIn(t, longFolder(t, t.TempDir()))
	if l := h.people().ask("hello", `{}`); l.Error != nil {
		t.Fatal(l.Error)
	}
	path := h.worker.Path()
	if len(path) > 103 {
		t.Fatalf("the workers' path has %d bytes: %s", len(path), path)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	holder := h.birth("resize", 1, config.Worker)
	want(t, newPeer(t, conn).ask("ping", identity(holder)), "")
	if got := server.DataOf(path); got != h.data {
		t.Errorf("DataOf(%s) = %s, want %s", path, got, h.data)
	}
	// The worker's socket in the folder itself serves too, for those who can reach it.
	conn, err = server.DialSocket(filepath.Join(h.data, server.WorkerSocket))
	if err != nil {
		t.Fatal(err)
	}
	want(t, newPeer(t, conn).ask("ping", identity(holder)), "")
	h.stop()
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the short folder is left behind: %v", err)
	}
	names, err := os.ReadDir(h.data)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.Contains(n.Name(), ".sock") {
			t.Errorf("%s is left behind", n.Name())
		}
	}
}

// Below a folder that is closed to others (t.TempDir is, under root's TMPDIR or
// by mode) a child of another user still reaches its socket.
func TestSockets_OtherUserReachesWorkerSocket(t *testing.T) {
	base := t.TempDir()
	if err := os.Chmod(base, 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHouseIn(t, filepath.Join(base, "data"))
	holder := h.birth("resize", 1, config.Worker)
	line := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"process":"` + string(holder.Process) + `","lease_token":` + holder.Token.String() + `}}`
	if got := asNobody(t, h.worker.Path(), line); !strings.Contains(got, `"result":{}`) {
		t.Fatalf("another user with the identity got %s", got)
	}
	// P10: without the identity it can do nothing.
	line = strings.Replace(line, string(holder.Process), "proc_"+strings.Repeat("0", 32), 1)
	if got := asNobody(t, h.worker.Path(), line); !strings.Contains(got, "actor_lease_lost") || strings.Contains(got, string(holder.Process)) {
		t.Fatalf("another user without the identity got %s", got)
	}
}

// K4, P10: control.sock is closed to other users by its mode, and by what the
// kernel says of the peer where the mode was changed.
func TestSockets_OtherUserIsNoOperator(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "sov")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHouseIn(t, filepath.Join(base, "data"))
	path := filepath.Join(h.data, server.ControlSocket)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v %v, want 0600", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Join(h.data, server.WorkerSocket)); err != nil || info.Mode().Perm() != 0o666 {
		t.Fatalf("mode of the workers' socket %v %v, want 0666", info.Mode(), err)
	}
	if got := asNobody(t, path, `{"jsonrpc":"2.0","id":1,"method":"shutdown"}`); !strings.Contains(got, "permission denied") {
		t.Fatalf("another user got %s", got)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := asNobody(t, path, `{"jsonrpc":"2.0","id":1,"method":"shutdown"}`); !strings.Contains(got, "permission_denied") {
		t.Fatalf("another user got %s", got)
	}
}

// K2: the socket of a supervisor that was killed is replaced; what is no socket
// is not.
func TestListen_ReplacesStaleSocket(t *testing.T) {
	data := t.TempDir()
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(data, server.ControlSocket)})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Dial(data); !refusal.Has(err, refusal.Unavailable) {
		t.Fatalf("dialing a stale socket: %v, want unavailable", err)
	}
	l, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Dial(data)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Dial(data); !refusal.Has(err, refusal.Unavailable) {
		t.Fatalf("dialing after close: %v, want unavailable", err)
	}
	for _, name := range []string{server.ControlSocket, server.ControlSocket + ".new"} {
		file := filepath.Join(data, name)
		if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := server.ListenControl(data); err == nil || !strings.Contains(err.Error(), "in the way") {
			t.Fatalf("listening over a file: %v", err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
			t.Fatalf("the file is %q, %v", b, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// A supervisor that was killed leaves its short folder; the next one removes it.
func TestListen_RemovesShortFolderOfTheDead(t *testing.T) {
	data := longFolder(t, t.TempDir())
	if err := os.MkdirAll(data, 0o711); err != nil {
		t.Fatal(err)
	}
	dead, err := server.ListenWorker(data) // never closed before the next
	if err != nil {
		t.Fatal(err)
	}
	next, err := server.ListenWorker(data)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := os.Stat(filepath.Dir(dead.Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dead one's folder is still there: %v", err)
	}
	conn, err := net.Dial("unix", next.Path())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// A close that comes late removes nobody else's socket.
func TestListen_CloseLeavesSuccessor(t *testing.T) {
	data := t.TempDir()
	first, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	second, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := server.Dial(data)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
