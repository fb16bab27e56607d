package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/interrupt"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// linkToSelf is a path by which this test binary is the program.
func linkToSelf(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "sovereign") // testscript.Main goes by the name
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// P6: a program that takes over catches what stops it before its other packages are
// initialized, which takes most of the time until main: a signal that comes meanwhile would
// end it, and the children with it. Catch them in package main, or have package interrupt
// import what takes long, and this fails.
func TestTakeover_CatchesSignalsFirst(t *testing.T) {
	cmd := exec.Command(linkToSelf(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", interrupt.Handoff+"=none")
	out, _ := cmd.CombinedOutput() // there is nothing to take over
	var inits []string
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "init "); ok {
			name, _, _ := strings.Cut(rest, " ")
			inits = append(inits, name)
		}
	}
	at := map[string]int{}
	for i, name := range inits {
		at[name] = i + 1
	}
	const ours = "github.com/sovereign-run/sovereign/"
	const first = ours + "interrupt"
	if at[first] == 0 || at["os/signal"] == 0 {
		t.Fatalf("it does not say when its packages are initialized:\n%s", out)
	}
	for _, name := range inits {
		slow := name == "main" || strings.HasPrefix(name, ours+"config") || strings.HasPrefix(name, "google.golang.org/") || strings.HasPrefix(name, "net/")
		if slow && at[name] < at[first] {
			t.Errorf("%s is initialized before %s", name, first)
		}
	}
}

// P6: a signal stops a run cleanly, exit status 0, also while it still waits for the store
// that another one has. Open the store before the signals are caught and this fails: they
// kill it.
func TestRun_StopsEarly(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := newStore(t)
		db, err := bolt.Open(dir, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		// It asks who holds the lock: from then on it waits, for an answer that does not come.
		control, err := net.Listen("unix", filepath.Join(dir, "control.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer control.Close()
		file := filepath.Join(t.TempDir(), "actors.yaml")
		if err := os.WriteFile(file, []byte("version: 1\nactors:\n  job: {command: [cat]}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(linkToSelf(t), "run", file, "--data", dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		asked, err := control.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer asked.Close()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || out.Len() > 0 {
			t.Errorf("stopped by %v it ended with %v, and said:\n%s", sig, err, &out)
		}
	}
}
