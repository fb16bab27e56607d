//go:build unix

package capture_test

import (
	"os/exec"
	"syscall"
)

// grouped makes cmd the leader of a process group, for killGroup.
func grouped(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills what a started cmd left behind in its group.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
