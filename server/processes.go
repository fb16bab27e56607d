package server

import (
	"context"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
)

// Processes are the living children, as their supervisor knows them. A child is
// among them before its program runs, and until it has been reaped.
type Processes interface {
	// Lookup returns what the process may speak for. ok is false for a process
	// that does not live.
	Lookup(p fence.Process) (h fence.Holder, mode config.Mode, ok bool)
	// Alive says that the process showed a sign of life just now.
	Alive(p fence.Process)
	// Claiming says that a claim of the process waits, which is a sign of life
	// until done is called.
	Claiming(p fence.Process) (done func())
	// Draining returns a context that ends when the process is to claim no more.
	Draining(p fence.Process) context.Context
	// Ready says that the process declared itself ready.
	Ready(p fence.Process)
	// LeaseLost says that the store no longer knows the lease of the process,
	// which lives: it is to be told to stop at once.
	LeaseLost(p fence.Process, why string)
}
