package bolt_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// mountTmpfs mounts 3 MiB of memory on dir for the time of the test.
func mountTmpfs(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}

// mountExt4 mounts 6 MiB of ext4 without a journal on dir for the time of the test.
func mountExt4(t *testing.T, dir string) {
	t.Helper()
	mountImage(t, dir, 6<<20, "^has_journal")
}

// mountJournaled mounts 10 MiB of ext4 on dir for the time of the test. It gives
// freed blocks to others only when its journal has been written.
func mountJournaled(t *testing.T, dir string) {
	t.Helper()
	mountImage(t, dir, 10<<20, "has_journal")
}

func mountImage(t *testing.T, dir string, size int64, feature string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	image := t.TempDir() + "/image"
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, size); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-O", feature, image},
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}

// remountReadOnly makes the disk mounted on dir read-only.
func remountReadOnly(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
}
