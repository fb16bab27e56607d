package main

import "syscall"

// endWithParent has the child killed when the thread that starts it ends: not even
// a SIGKILL of the driver leaves a supervisor running.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
