package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// L4, E3: sovereign as PID 1 of a container: it is the program that the signal
// reaches, reaps what others leave, and ends with status 0 and nothing left. With
// a shell before it, which is PID 1 then, the signal would end at the shell: so
// docs/operating.md has the exec form, which is looked at here as well.
func TestRun_AsPID1(t *testing.T) {
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if err := probe.Run(); err != nil {
		t.Skipf("no pid namespaces here: %v", err)
	}
	if page, err := os.ReadFile("../../docs/operating.md"); err != nil || !strings.Contains(string(page), `ENTRYPOINT ["sovereign", "run"]`) {
		t.Errorf("docs/operating.md does not show the exec form: %v", err)
	}
	dir := t.TempDir()
	// Orphans come to PID 1. They hold what the actor reads to its end, so all of them have
	// ended by then; it looks for zombies until there is none.
	actors := `version: 1
actors:
  d:
    command: [sh, -c, 'x=$(for i in 1 2 3 4 5 6 7 8 9; do (sh -c "sleep 0.0$i" &); done); trap "echo bye; exit 0" TERM; until z=$(ps -eo stat= | grep -c ^Z); [ $z = 0 ]; do :; done; echo "pid $PPID zombies $z"; sleep 1000 & wait']
    mode: daemon
`
	if err := os.WriteFile(filepath.Join(dir, "actors.yaml"), []byte(actors), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc && exec "$0" run actors.yaml`, linkToSelf(t))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := time.AfterFunc(testLimit, func() { _ = cmd.Process.Kill() })
	defer over.Stop()
	var seen []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		seen = append(seen, lines.Text())
		if strings.Contains(lines.Text(), "zombies") {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said.String())
	}
	all := strings.Join(seen, "\n")
	if !strings.Contains(all, "pid 1 zombies 0") || !strings.Contains(all, "bye") {
		t.Errorf("the actor said %q; the supervisor said %s", all, said.String())
	}
}
