package capture

import (
	"os"
	"path/filepath"
)

// settle brings a file that was rotated away, its index, and the names of both to
// disk, and closes them. Its caller's child need not wait for that: settled is closed
// when it is over, whether it went well or not, and the next rotation waits for it.
//
// So a power cut costs at most the current file and the one before it, and no file
// that is older, however long the kernel keeps what it has not written yet.
func settle(log, index *os.File) (settled <-chan struct{}) {
	done := make(chan struct{})
	go func() { // ends with the syncs
		defer close(done)
		// An error is the disk's, and the next write meets it too: a log is not
		// promised line by line.
		if index != nil {
			index.Sync()
			index.Close()
		}
		log.Sync()
		log.Close()
		if dir, err := os.Open(filepath.Dir(log.Name())); err == nil {
			dir.Sync()
			dir.Close()
		}
	}()
	return done
}
