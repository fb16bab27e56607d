package process_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/process"
)

// P4.9: what a living supervisor looks after is tended; what a dead one left is not, also
// where one of it listens in the supervisor's place for those that it has started, as who
// passes its socket on to a container does. Take one that bears the mark itself for a
// supervisor and this fails: nobody would end it.
func TestTended_ByNoneThatIsLeftItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark := "proc_tended" + strconv.Itoa(os.Getpid())
	cmd := command(t, "tending", filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	cmd.Env = append(cmd.Env, "TENDED_MARK="+mark)
	lines := begin(t, cmd)
	var pids [3]int // the supervisor, its worker, and what that has started
	for i := range pids {
		if _, err := fmt.Fscan(lines, &pids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.TrimSpace(run(t, "tended?", mark)); got != strconv.Itoa(pids[0]) {
		t.Errorf("while the supervisor %d lives they are looked after by %s", pids[0], got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids[1:] {
		if state(pid) == 0 {
			t.Fatalf("%d died with its supervisor: the test has nothing to find", pid)
		}
	}
	if got := strings.TrimSpace(run(t, "tended?", mark)); got != "0" {
		t.Errorf("after its end they are looked after by %s", got)
	}
	if got := strings.TrimSpace(run(t, "restarted", "marked", fmt.Sprintf(`{"Mark":%q}`, mark))); got != "2" {
		t.Errorf("%s of 2 were ended", got)
	}
}

func init() {
	// tending listens on the first of its sockets, and has what it starts, which is the same
	// with the others, bear the mark and know the socket. It says its number.
	roles["tending"] = func(s *supervisor) {
		if len(s.args) > 0 {
			l, err := net.Listen("unix", s.args[0])
			s.check(err)
			defer l.Close() // never
		}
		fmt.Println(os.Getpid())
		if len(s.args) > 0 {
			exe, err := os.Executable()
			s.check(err)
			cmd := exec.Command(exe, s.args[1:]...)
			cmd.Env = append(os.Environ(), roleVariable+"=tending", process.MarkVariable+"="+os.Getenv("TENDED_MARK"), process.SocketVariable+"="+s.args[0])
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			s.check(cmd.Start())
		}
		select {}
	}
	roles["tended?"] = func(s *supervisor) {
		s.host()
		got, err := s.Tended(func(mark string) bool { return mark == s.args[0] })
		s.check(err)
		fmt.Println(got[s.args[0]])
		s.check(s.Close())
	}
}
