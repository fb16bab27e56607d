package supervisor

import "syscall"

// What a supervisor opens, roughly and rather too much: for itself, and for each
// slot (pipes of its output, a channel or the body, a pidfd, a log and its
// index).
const (
	descriptorsOwn  = 64
	descriptorsSlot = 7
)

// warnOfLimit says at the start what would otherwise come as one failed start
// after the other: that the limit of open files is too low for all slots (H2).
func (sup *Supervisor) warnOfLimit() {
	slots := 0
	for _, a := range sup.actors() {
		slots += len(a.all())
	}
	need := uint64(descriptorsOwn + descriptorsSlot*slots)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < need {
		sup.log.Warn("limit of open files is too low for all slots to run at once", "limit", limit.Cur, "needed", need,
			"slots", slots, "next", "raise it (ulimit -n, LimitNOFILE= in a unit), or lower replicas")
	}
}
