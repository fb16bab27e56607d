//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func canMount() bool { return false }

func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	ts.Fatalf("this system cannot mount a disk in memory")
}
