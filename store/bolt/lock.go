package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/refusal"
)

// lockDir takes the store's lock without waiting: for writing alone, for reading
// shared with other readers.
//
// The lock is the kernel's, on the open file, and dies with the process that
// holds it. The file's existence means nothing, nor does the process number in
// it: that is for the message, and may belong to somebody else by now. The file
// is never removed, because two processes could then each lock one of its name.
func lockDir(dir string, readOnly bool) (*os.File, error) {
	name := filepath.Join(dir, LockFile)
	flag, how := os.O_RDWR|os.O_CREATE, unix.LOCK_EX
	if readOnly {
		flag, how = os.O_RDONLY, unix.LOCK_SH
	}
	f, err := openFile(name, flag, 0o600)
	if readOnly && errors.Is(err, os.ErrNotExist) {
		// Nobody ever opened this store for writing here, so nobody holds it.
		return nil, nil
	}
	if err != nil {
		return nil, fileRefusal("open the lock of the store in "+dir, err)
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		defer f.Close()
		return nil, lockedRefusal(dir, f)
	}
	if err != nil {
		f.Close()
		return nil, fileRefusal("lock the store in "+dir, err)
	}
	if !readOnly {
		// A crash between these leaves a lock file without a number, and no lock.
		pid := strconv.Itoa(os.Getpid()) + "\n"
		err = f.Truncate(0)
		if err == nil {
			_, err = f.WriteAt([]byte(pid), 0)
		}
		if err != nil && !isFull(err) {
			f.Close()
			return nil, fileRefusal("write the lock of the store in "+dir, err)
		}
	}
	return f, nil
}

// Holder returns the pid that the last one to open the store in dir for writing has left
// in its lock, for messages: it may be somebody else's by now. 0 if there is none.
func Holder(dir string) int {
	f, err := openFile(filepath.Join(dir, LockFile), os.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	return pidIn(f)
}

// pidIn returns the pid in the lock f, 0 if there is none.
func pidIn(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

func lockedRefusal(dir string, f *os.File) error {
	holder := "another process"
	if pid := pidIn(f); pid > 0 {
		holder = fmt.Sprintf("another process (pid %d, by its own account)", pid)
	}
	return refusal.New(refusal.StoreLocked,
		"open the store in "+dir,
		holder+" has it open",
		"stop that process, or name another store with --data").Later()
}
