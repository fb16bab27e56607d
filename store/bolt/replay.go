package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/wal"
)

// replay returns what the log beside a database with state s holds behind it, as a
// table and the state that it leads to; a nil table where there is no log in use. It
// changes nothing.
//
// It is refused, store_rolled_back, if the log is not the one that goes on where the
// database ends, or one of its two files is missing, and store_corrupt if a commit in it
// cannot be read although it was confirmed, or a whole file cannot. What can be replayed
// nevertheless is returned as well.
//
// The end of the log is the first record that is not whole. After a crash only the last
// one can be so, since each is synced before the next is written, and the asynchronous ones
// in front of it (see store.Tx); and it was not confirmed. So there must be no whole one
// behind it but of those.
func replay(dir string, s state) (*table, state, error) {
	if s.log == 0 {
		return nil, s, nil
	}
	doing := "open the store in " + dir
	var files [2]wal.Content
	var unreadable error // what became of the rest is to be told, whichever file it is
	for i, name := range LogFiles {
		var err error
		if files[i], err = loadLog(filepath.Join(dir, name)); errors.Is(err, wal.ErrUnreadable) {
			files[i], unreadable = nil, unreadableLog(doing, name, err)
		} else if err != nil {
			return nil, s, fileRefusal(doing, err)
		}
	}
	t := newTable(s.log, nil)
	// 1. The file that the database names.
	at, alike, spareBegun := -1, false, false
	for i, f := range files {
		if _, head, ok := f.Head(s.log); ok && headFits(head, s) {
			alike = at >= 0
			at, spareBegun = i, bothBegun(head)
		}
	}
	if at < 0 && unreadable != nil {
		return t, s, unreadable
	}
	if at < 0 {
		return t, s, rolledBackRefusal(dir, "the log that goes on where "+DataFile+" ends is missing: one of them is older than the other, or belongs to another store")
	}
	base, err := s, error(nil)
	if s, err = replayFile(files[at], base.log, t, s); err != nil {
		return t, s, corruptLog(doing, LogFiles[at], s, err)
	}
	// 2. The other one, if commits went on there. It was there, and longer than a head,
	// before the database named the first.
	other, salt := files[1-at], saltBehind(base.log, base.id)
	if alike {
		return t, s, copiedLog(doing)
	}
	if len(other) < headLen && unreadable == nil {
		return t, s, lostLog(doing, LogFiles[1-at], len(other), s)
	}
	if spareBegun && !other.Begun() && unreadable == nil {
		return t, s, blankLog(doing, LogFiles[1-at], s)
	}
	if number, head, ok := other.Head(salt); ok && headFits(head, base) && number == s.batch {
		if s, err = replayFile(other, salt, t, s); err != nil {
			return t, s, corruptLog(doing, LogFiles[1-at], s, err)
		}
	}
	s.log = base.log
	// 3. Nothing whole may lie behind the end, and the files have the length that they
	// were known to have.
	for i, f := range files {
		for _, salt := range []uint64{base.log, salt} {
			beyond, size := f.Beyond(salt, s.batch)
			if beyond != 0 {
				return t, s, corruptLog(doing, LogFiles[i], s, fmt.Errorf("commit %d is there", beyond))
			}
			if size > uint64(len(f)) {
				return t, s, corruptLog(doing, LogFiles[i], s, fmt.Errorf("it is cut off, and has %d of %d bytes", len(f), size))
			}
		}
	}
	return t, s, unreadable
}

// replayFile makes the records of the file f that are behind s part of t, and returns
// the state after them.
func replayFile(f wal.Content, salt uint64, t *table, s state) (state, error) {
	base := s
	err := f.Records(salt, func(number uint64, payload []byte) error {
		if number <= s.batch {
			return nil
		}
		if number > s.batch+1 {
			return fmt.Errorf("commit %d follows", number)
		}
		next, err := decodeRecord(payload, t, number)
		if err == nil && (next.batch != number || next.id != base.id || next.generation != base.generation) {
			err = errBadEntry
		}
		if err != nil {
			return fmt.Errorf("commit %d: %w", number, err)
		}
		s = next
		return nil
	})
	return s, err
}

func corruptLog(doing, name string, s state, err error) error {
	return refusal.New(refusal.StoreCorrupt, doing,
		fmt.Sprintf("%s is damaged behind commit %d: %v", name, s.batch, err),
		"restore the newest backup with `sovereign restore`, or go on without what is lost, with `sovereign recover --accept-rollback`")
}

// lostLog is the refusal for the log file of which nothing is left but size bytes,
// while all up to s is there.
func lostLog(doing, name string, size int, s state) error {
	is := "missing or empty"
	if size > 0 {
		is = fmt.Sprintf("cut off to %d bytes", size)
	}
	return refusal.New(refusal.StoreRolledBack, doing,
		fmt.Sprintf("%s is %s, and may have held what was confirmed behind commit %d", name, is, s.batch),
		"put that file back as it was, or restore the newest backup with `sovereign restore`, or go on without what it held, with `sovereign recover --accept-rollback`: "+
			"a new epoch starts, and messages that are claimed are parked")
}

// blankLog is the refusal for the log file that begins with zeros, while all up to s is
// there.
func blankLog(doing, name string, s state) error {
	return refusal.New(refusal.StoreCorrupt, doing,
		fmt.Sprintf("%s begins with zeros, as no file of the log does once it is in use: it was overwritten, and may have held what was confirmed behind commit %d", name, s.batch),
		"put that file back as it was, or restore the newest backup with `sovereign restore`, or go on without what it held, with `sovereign recover --accept-rollback`: "+
			"a new epoch starts, and messages that are claimed are parked")
}

// copiedLog is the refusal where both log files are the same one.
func copiedLog(doing string) error {
	return refusal.New(refusal.StoreCorrupt, doing,
		LogFiles[0]+" and "+LogFiles[1]+" begin alike: one is a copy, in the place of a file that may have held what was confirmed",
		"put the right file there, or restore the newest backup with `sovereign restore`, or go on without what it held, with `sovereign recover --accept-rollback`")
}

// unreadableLog is the refusal for a log file of which nothing can be read.
func unreadableLog(doing, name string, err error) error {
	return refusal.New(refusal.StoreCorrupt, doing, name+": "+err.Error(),
		"put the right file there, or restore the newest backup with `sovereign restore`, or go on without what it holds, with `sovereign recover --accept-rollback`: "+
			"what is there is kept as "+name+".unreadable").Because(err)
}

// unneededLog is the refusal for what has the name of a log file, is none, and holds
// nothing that the store needs.
func unneededLog(doing, name string, err error) error {
	return refusal.New(refusal.StoreCorrupt, doing, name+": "+err.Error(),
		"move it away: the store was closed in order, and needs nothing of it").Because(err)
}

// setAside gives log files that cannot be read another name, so that new ones can take
// their place.
func (db *DB) setAside() error {
	for _, name := range LogFiles {
		path := filepath.Join(db.dir, name)
		if _, err := loadLog(path); !errors.Is(err, wal.ErrUnreadable) {
			continue
		}
		if err := renameAside(path); err != nil {
			return fileRefusal("set "+path+" aside", err)
		}
	}
	return nil
}

// renameAside gives what is at path a name behind that which is free, for a person to
// look at.
func renameAside(path string) error {
	aside := path + ".unreadable"
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); err != nil {
			break
		}
		aside = fmt.Sprintf("%s.unreadable.%d", path, n)
	}
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// distrustLog has the log be read from the disk.
func (db *DB) distrustLog() error {
	for _, name := range LogFiles {
		f, err := openLogFile(filepath.Join(db.dir, name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, wal.ErrUnreadable) {
			continue // replay will say it
		}
		if err == nil {
			err = errors.Join(dropCache(f), f.Close())
		}
		if err != nil {
			return fileRefusal("open the store in "+db.dir, err)
		}
	}
	return nil
}
