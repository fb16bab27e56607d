package bolt

import "strings"

// The files of a store, in its folder (docs/storage.md).
const (
	DataFile = "mailbox.db"
	LockFile = "mailbox.lock"
	MarkFile = "mailbox.mark"

	// ReserveFile is room on the disk that is kept for essential updates.
	ReserveFile = "mailbox.reserve"

	// KeptFile is the mailbox.db that the last restore has replaced. Nothing but the next
	// restore changes or removes it.
	KeptFile = DataFile + ".before-restore"

	// unfinished is added to the name of a file while that is being written.
	unfinished = ".new"
)

// LogFiles are the two files of the log, used in turn: while one is moved into
// mailbox.db commits go on in the other.
var LogFiles = [2]string{"mailbox.wal.1", "mailbox.wal.2"}

// Owns reports whether a store may make, change or remove a file of this name in its
// folder.
func Owns(name string) bool {
	switch strings.TrimSuffix(name, unfinished) {
	case DataFile, LockFile, MarkFile, ReserveFile, KeptFile, LogFiles[0], LogFiles[1]:
		return true
	}
	return false
}
