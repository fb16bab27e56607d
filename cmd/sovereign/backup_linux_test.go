package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A backup that was said to be made is there after a power cut, whole and under its
// name: as a new file, and in the place of an older one. The power of a journaling
// file system is cut right after the command. Leave out the sync of the file, or that
// of its folder in publish, and this fails.
func TestBackup_SurvivesAPowerCut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	data := newStore(t)
	if status, _, stderr := sovereign(t, "send", "job", "first", "--data", data); status != 0 {
		t.Fatal(stderr)
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 32<<20); err != nil {
		t.Fatal(err)
	}
	try := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	try("mkfs.ext4", "-q", "-F", image)
	name := filepath.Join(dir, "copy.db")
	for _, args := range [][]string{{"backup", name}, {"backup", "--force", name}} {
		try("mount", "-o", "loop", image, dir)
		if status, _, stderr := sovereign(t, append(args, "--data", data)...); status != 0 {
			t.Fatal(stderr)
		}
		want, err := os.ReadFile(name)
		if err == nil {
			err = cutPower(dir)
		}
		if e := unix.Unmount(dir, 0); err == nil {
			err = e
		}
		if err != nil {
			t.Fatal(err)
		}
		// Of a copy: whoever has copied the mounts meanwhile still has the one that was cut.
		try("cp", "--sparse=always", image, image+".next")
		if err := os.Rename(image+".next", image); err != nil {
			t.Fatal(err)
		}
		try("mount", "-o", "loop", image, dir)
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %d of %d bytes are there after the cut, %v", args, len(got), len(want), err)
		}
		// It is a store, with the messages of its moment.
		restored := t.TempDir()
		if status, _, stderr := sovereign(t, "restore", name, "--data", restored); status != 0 {
			t.Errorf("%q: %s", args, stderr)
		} else if status, stdout, _ := sovereign(t, "verify", "--data", restored); status != 0 {
			t.Errorf("%q: %s", args, stdout)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		// The second one is another file than the first.
		if status, _, stderr := sovereign(t, "send", "job", "second", "--data", data); status != 0 {
			t.Fatal(stderr)
		}
	}
}

// cutPower is the power cut of ext4: nothing more is written, not even the journal.
func cutPower(dir string) error {
	const ext4Shutdown, withoutFlush = 0x8004587d, 2
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), ext4Shutdown, withoutFlush)
}
