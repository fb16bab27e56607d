package process

// Cgroups reports whether trees are kept in cgroups, and so whether nothing can
// escape KillTree.
func (h *Host) Cgroups() bool { return h.groups != nil }

// TreeGone reports whether nothing of the tree is left.
func (p *Process) TreeGone() bool { return p.treeGone() }
