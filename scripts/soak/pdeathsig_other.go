//go:build !linux

package main

import "syscall"

// endWithParent does nothing where there is no death signal.
func endWithParent(*syscall.SysProcAttr) {}
