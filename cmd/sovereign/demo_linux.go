package main

import "syscall"

// endWithParent has the child stopped when the thread that starts it ends: not
// even a SIGKILL of the demonstration leaves a supervisor running.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
