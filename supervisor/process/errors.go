package process

import (
	"fmt"
	"strings"
	"syscall"
)

// A StartError says why a child could not be started. Nothing of it is left. It
// matches its Errno under errors.Is; EMFILE, ENFILE, EAGAIN, ENOMEM and ETXTBSY
// may pass by themselves (see Temporary), the others need somebody to repair
// the command.
type StartError struct {
	Errno   syscall.Errno // 0 where no system call failed (an empty command, a closed Host)
	Path    string        // what could not be executed or entered
	Reason  string        // a sentence for people, e.g. "/x/run.sh: its interpreter /usr/bin/pyton does not exist"
	Folders string        // the PATH in which the command was looked for in vain; "" = in none
}

// Error is "spawn failed: ENOENT: /x/y: no such file".
func (e *StartError) Error() string {
	if e.Errno == 0 {
		return "spawn failed: " + e.Reason
	}
	return "spawn failed: " + errnoName(e.Errno) + ": " + e.Reason
}

// Unwrap returns Errno, or nil where there is none.
func (e *StartError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Temporary reports whether the same Spec may start later without any repair.
func (e *StartError) Temporary() bool {
	switch e.Errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ETXTBSY, syscall.EINTR:
		return true
	}
	return false
}

// A StuckError names what did not die of SIGKILL within the bound, for example
// in uninterruptible sleep, or what this program may not kill. The caller must
// not start another incarnation beside it; KillTree may be called again.
type StuckError struct {
	PIDs  []int
	Marks []string // by EndMarked: the identities that they, or their ancestors, bear
	Cause error    // EPERM where it may not be killed; nil = it does not die
}

// Error is "stuck: could not kill pid 12, 13", with the cause behind it.
func (e *StuckError) Error() string {
	pids := make([]string, len(e.PIDs))
	for i, pid := range e.PIDs {
		pids[i] = fmt.Sprint(pid)
	}
	text := "stuck: could not kill pid " + strings.Join(pids, ", ")
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns Cause.
func (e *StuckError) Unwrap() error { return e.Cause }
