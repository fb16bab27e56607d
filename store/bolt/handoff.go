package bolt

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// HandOver is Close, but keeps the lock: nobody else can open the store before the file
// that it returns is closed, or the process has ended that has it. Give it to Open
// (Options.Lock), in this program or in the one that inherits its descriptor. The lock
// is returned beside an error, too, unless it could not be kept.
func (db *DB) HandOver() (lock *os.File, err error) {
	fd, err := unix.FcntlInt(db.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("keep the lock of the store in %s: %w", db.dir, err)
	}
	return os.NewFile(uintptr(fd), LockFile), db.Close()
}

// Schema is the version of the format that stores are written in.
const Schema = schemaVersion

// CheckSchema returns nil where this version of the program can open a store that one
// with this Schema has written, or the refusal wrong_state that Open would give.
func CheckSchema(schema uint32) error {
	if schema <= schemaVersion {
		return nil
	}
	return newerSchema("open the store", state{schema: schema})
}
