package process

// An Identity names one process for as long as the machine exists: its number
// alone is reused, within one boot together with its start time it is not. It
// is kept on disk, so that the next supervisor can tell a leftover from a
// stranger. The zero Identity is nobody's.
type Identity struct {
	BootID       string `json:"boot_id"`
	PID          int    `json:"pid"`
	StartTime    uint64 `json:"start_time"`    // clock ticks since boot, field 22 of /proc/PID/stat; 0 = unknown
	PIDNamespace string `json:"pid_namespace"` // target of /proc/self/ns/pid, in which PID counts
}

// Known reports whether id can be compared at all.
func (id Identity) Known() bool { return id.PID > 0 && id.StartTime > 0 && id.BootID != "" }
