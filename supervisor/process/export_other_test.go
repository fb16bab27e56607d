//go:build !linux

package process

// Cgroups reports whether trees are kept in cgroups: they are only on Linux.
func (h *Host) Cgroups() bool { return false }
