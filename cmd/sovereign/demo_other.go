//go:build !linux

package main

import "syscall"

// endWithParent does nothing where the system has no death signal: a SIGKILL of
// the demonstration leaves its supervisor running, any other end does not.
func endWithParent(*syscall.SysProcAttr) {}
