package recovery_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/recovery"
)

// P4.6: a workspace with folders that their owner may not write, as read-only caches of
// modules are, is reclaimed without any privilege. Remove with os.RemoveAll alone
// and this fails.
func TestRemove_UnwritableFolders(t *testing.T) {
	ws := recovery.NewWorkspaces(t.TempDir())
	w := ws.Of(1, 1, -1)
	deep := filepath.Join(w.Path, "cache", "module")
	err := errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "file"), nil, 0o400),
		os.Chmod(deep, 0o555), os.Chmod(filepath.Dir(deep), 0o555))
	if err != nil {
		t.Fatal(err)
	}
	asNobody(t, w.Path, func() {
		if err := ws.Remove(w); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(w.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// What writes a result and what finds it again agree on where it lies.
func TestWorkspaces_FindsWhatItNames(t *testing.T) {
	ws := recovery.NewWorkspaces(t.TempDir())
	want := map[string]recovery.Workspace{}
	for _, w := range []recovery.Workspace{ws.Of(7, 3, -1), ws.Of(8, 1, 1234)} {
		want[w.Path] = w
		if err := os.MkdirAll(w.Path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	result := ws.Result(9, 2)
	want[result.Path] = result
	if err := errors.Join(os.MkdirAll(filepath.Dir(result.Path), 0o700), os.WriteFile(result.Path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := ws.List()
	if err != nil || len(got) != len(want) {
		t.Fatalf("found %+v, %v", got, err)
	}
	for _, w := range got {
		if want[w.Path] != w {
			t.Errorf("found %+v, want %+v", w, want[w.Path])
		}
	}
}

// asNobody runs f without root's power over permissions, and gives tree to who it
// then is.
func asNobody(t *testing.T, tree string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	for dir := tree; ; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(dir)) == filepath.Base(os.TempDir()) {
			break
		}
	}
	err := filepath.WalkDir(filepath.Dir(tree), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Seteuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Seteuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
