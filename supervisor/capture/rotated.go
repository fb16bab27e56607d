package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxKeep is the highest number of a rotated file that is looked at: no more are kept.
const maxKeep = 1000

// rotated is the name of the nth file before the current one, which is the 0th.
func rotated(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

// unrotated reads path and n from a name that rotated may have made.
func unrotated(name string) (path string, n int) {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		if n, err := strconv.Atoi(name[dot+1:]); err == nil && n > 0 && n <= maxKeep && rotated(name[:dot], n) == name {
			return name[:dot], n
		}
	}
	return name, 0
}

// oldestOf is the highest number that a file of path's has; -1 = there is none.
func oldestOf(path string) int {
	oldest := -1
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return oldest
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if of, n := unrotated(name); of == filepath.Base(path) {
			oldest = max(oldest, n)
		}
	}
	return oldest
}

// openNewer goes on to the file after this one, if it was rotated, over those that are
// not there: a person removed them, or a crash left a gap in the numbers. Which one that
// is may change while we look: then we look again.
func (r *reader) openNewer(this os.FileInfo) bool {
	for {
		at, oldest := r.whereIs(this)
		if at == 0 {
			return false
		}
		newer := at - 1
		if at < 0 {
			newer = oldest // ours is deleted; so are perhaps some after it
		}
		if newer < 0 {
			return false // moved away, and nothing new yet
		}
		p, err := r.openAt(newer)
		for errors.Is(err, fs.ErrNotExist) && newer > 0 {
			newer--
			p, err = r.openAt(newer)
		}
		if err != nil {
			return false // the next event brings us back
		}
		if again, _ := r.whereIs(this); again != at {
			p.close()
			continue
		}
		r.use(p, 0)
		if at > 0 && newer < at-1 && !r.isAt(at-1) {
			r.note = gapNote(r.path, newer+1, at-1)
		}
		return true
	}
}

// isAt reports whether the file that is read is the nth: that it was only being rotated
// when it was found under another number.
func (r *reader) isAt(n int) bool {
	mine, err := r.log.Stat()
	if err != nil {
		return false
	}
	info, err := os.Stat(rotated(r.path, n))
	return err == nil && os.SameFile(info, mine)
}

// gapNote says that no file is there that has a number from newest to oldest.
func gapNote(path string, newest, oldest int) string {
	name := filepath.Base(path)
	if newest == oldest {
		return fmt.Sprintf("[sovereign: lines may be missing here: %s is not there]", rotated(name, newest))
	}
	return fmt.Sprintf("[sovereign: lines may be missing here: %s to %s are not there]", rotated(name, oldest), rotated(name, newest))
}

// whereIs returns which rotated file this is, -1 = none, and the oldest there
// is, -1 = none. Files only move to higher numbers, and so none is missed by going up.
func (r *reader) whereIs(this os.FileInfo) (at, oldest int) {
	oldest, last := -1, -1 // last is looked for where a number is missing
	for k := 0; ; k++ {
		info, err := os.Stat(rotated(r.path, k))
		switch {
		case err == nil && os.SameFile(info, this):
			return k, k
		case err == nil:
			oldest = k
			continue
		case last < 0:
			last = oldestOf(r.path) + 1 // one may be rotated meanwhile
		}
		if k >= last {
			return -1, oldest
		}
	}
}
