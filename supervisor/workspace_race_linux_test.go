package supervisor_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// P10: where another user can write the folder of his workspaces he can put a link in the
// place of one that has just been made. Nothing but a folder is given to him: give
// it by its path and this fails, with a file of the supervisor's user in his hands.
func TestWorkspace_NothingElseIsGivenToItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const nobody = 65534
	parent := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, aside := filepath.Join(parent, "m1-1"), filepath.Join(parent, "aside")
	var swapped atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE) == nil && os.Symlink(secret, dir) == nil {
				swapped.Add(1)
			}
		}
	}()
	for n := 0; n < 600 || swapped.Load() == 0 && n < 1_000_000; n++ { // a busy machine may let only one of both run for long
		// An error is an answer, too: then it was no folder any more.
		_ = supervisor.MakeFolder(dir, &process.Credential{UID: nobody, GID: nobody})
		_ = os.Remove(dir)
		_ = os.Remove(aside)
	}
	close(stop)
	<-stopped
	if swapped.Load() == 0 {
		t.Error("no folder was ever exchanged: nothing was tried")
	}
	st, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if uid := st.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("a file of root belongs to user %d now", uid)
	}
}

// P10: workspaces lie in a folder that is not their user's, who can reach his own and
// neither rename it, nor put anything in the place of another's. A folder that was his,
// or that somebody removed, is as good. Have makePassage leave what exists, and this fails.
func TestWorkspace_CannotBeReplacedByItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
	w := openReachable(t, shell("t", config.Task, `cd "$SOVEREIGN_WORKSPACE" && touch mine || echo unreachable
cd .. && for cmd in "mv ${SOVEREIGN_WORKSPACE##*/} aside" "mkdir m2-1" "ls" "rmdir ${SOVEREIGN_WORKSPACE##*/}" "chmod 777 ."; do $cmd 2>/dev/null && echo "$cmd"; done; exit 0`,
		func(a *config.Actor) { a.User = "65534"; a.Cwd = "/" }))
	folder := filepath.Join(w.dir, "runs.65534")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	w.run()
	for range 2 {
		if d := w.await(w.send("t", "")); d.State != mailbox.Done || len(d.Result) > 0 {
			t.Errorf("%s, it could do: %q", d.State, d.Result)
		}
		w.state("t", "idle")
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || info.Mode().Perm() != 0o711 {
			t.Errorf("the folder belongs to user %d, mode %o", st.Uid, info.Mode().Perm())
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}
