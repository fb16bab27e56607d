package supervisor_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// P10: the folder of the workspaces of another user is that user's, who can put a link
// in the place of one that has just been made. Nothing but a folder is given to him: give
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
	stop, swapped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				swapped <- n
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE) == nil && os.Symlink(secret, dir) == nil {
				n++
			}
		}
	}()
	for range 600 {
		// An error is an answer, too: then it was no folder any more.
		_ = supervisor.MakeFolder(dir, &process.Credential{UID: nobody, GID: nobody})
		_ = os.Remove(dir)
		_ = os.Remove(aside)
	}
	close(stop)
	if <-swapped == 0 {
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
