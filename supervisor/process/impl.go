package process

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
)

// A Host owns the children of this program. Make it with [NewHost].
type Host struct{}

// A Process is one child and its tree.
type Process struct {
	id     Identity
	exited chan struct{}
	exit   Exit
}

func newHost(*slog.Logger) (*Host, error)                        { return nil, errors.ErrUnsupported }
func (h *Host) start(context.Context, Spec) (*Process, error)    { return nil, errors.ErrUnsupported }
func (h *Host) cgroups() bool                                    { return false }
func (h *Host) enableLimits() error                              { return errors.ErrUnsupported }
func (h *Host) exec(string, []string, []string, []uintptr) error { return errors.ErrUnsupported }
func (h *Host) adopt(Identity, string, string) (*Process, error) { return nil, errors.ErrUnsupported }
func (h *Host) close() error                                     { return nil }
func (p *Process) cgroupPath() string                            { return "" }
func (p *Process) signal(syscall.Signal, bool) error             { return errors.ErrUnsupported }
func (p *Process) killTree(context.Context) error                { return errors.ErrUnsupported }
func (p *Process) treeGone() bool                                { return false }
func (p *Process) waitTree(context.Context) error                { return errors.ErrUnsupported }
func (h *Host) endMarked(context.Context, func(string) bool) (int, error) {
	return 0, errors.ErrUnsupported
}
func (h *Host) endLeftover(context.Context, Identity, string, string) (int, error) {
	return 0, errors.ErrUnsupported
}
