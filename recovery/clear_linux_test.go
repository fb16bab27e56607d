package recovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/recovery"
)

// P4.6: an attempt binds a folder of somebody's into its workspace and leaves it so. To
// reclaim the workspace must not empty that folder: leave out the comparison of mounts
// and this fails. Once it is unmounted the rest goes.
func TestRemove_LeavesWhatIsMounted(t *testing.T) {
	ws := recovery.NewWorkspaces(t.TempDir())
	w := ws.Of(1, 1, -1)
	theirs, at := t.TempDir(), filepath.Join(w.Path, "in", "data")
	file := filepath.Join(theirs, "file")
	err := errors.Join(os.WriteFile(file, []byte("keep"), 0o600), os.MkdirAll(at, 0o700),
		os.WriteFile(filepath.Join(w.Path, "own"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(theirs, at, "", unix.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	mounted := true
	defer func() {
		if mounted {
			_ = unix.Unmount(at, unix.MNT_DETACH)
		}
	}()
	if err := ws.Remove(w); err == nil || !strings.Contains(err.Error(), "something is mounted at "+at) {
		t.Errorf("removed with what is mounted in it: %v", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "keep" {
		t.Errorf("what was mounted holds %q now, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(w.Path, "own")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was the attempt's own is still there: %v", err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	mounted = false
	if err := ws.Remove(w); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// An attempt leaves folders within folders. That takes no descriptor for each: clear
// them all where they lie and this fails.
func TestRemove_DeepFolders(t *testing.T) {
	ws := recovery.NewWorkspaces(t.TempDir())
	w := ws.Of(1, 1, -1)
	if err := os.MkdirAll(w.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := unix.Open(w.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; i < 1500 && err == nil; i++ {
		var next int
		if err = unix.Mkdirat(dir, "deeper", 0o700); err == nil {
			next, err = unix.Openat(dir, "deeper", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		_ = unix.Close(dir)
		dir = next
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(dir)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 128, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err = ws.Remove(w)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
