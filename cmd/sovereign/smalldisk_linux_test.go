package main

import (
	"os"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// canMount reports whether scripts can have a disk of their own.
func canMount() bool { return os.Geteuid() == 0 }

// smallDisk mounts a disk of 3 MiB for the time of a script: smalldisk FOLDER.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: smalldisk FOLDER")
	}
	folder := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(folder, 0o755))
	ts.Check(syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=3m"))
	ts.Defer(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
}
