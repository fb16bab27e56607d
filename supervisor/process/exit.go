package process

import (
	"fmt"
	"syscall"
	"time"
)

// An Exit is how a child ended. The zero Exit is of a child that still runs.
type Exit struct {
	Code   int            // exit status, -1 when a signal ended it
	Signal syscall.Signal // the signal that ended it, 0 = none
	Core   bool           // a core was dumped
	At     time.Time      // when the supervisor saw it

	// Starved says that the kernel killed it, or a process of its tree, for lack of
	// memory. It is known only where limits are enabled.
	Starved bool
}

// Success reports whether the child ended by itself with status 0.
func (e Exit) Success() bool { return !e.At.IsZero() && e.Signal == 0 && e.Code == 0 }

// String is "exit status 3" or "killed by SIGSEGV (core dumped)".
func (e Exit) String() string {
	switch {
	case e.At.IsZero():
		return "running"
	case e.Signal != 0 && e.Core:
		return "killed by " + signalName(e.Signal) + " (core dumped)"
	case e.Signal != 0:
		return "killed by " + signalName(e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}
