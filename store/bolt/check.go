package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bbolt "go.etcd.io/bbolt"
)

// Check looks for structural damage of the store as it is now and calls fn for
// each problem, until fn returns false. It reads every page and changes nothing.
// Like a long View it keeps the pages of that state from being used again while
// it runs. It returns an error only if it could not look, as View does of a store that has
// failed. On a store that is open for reading it also says why Open would refuse it for its age.
//
// It looks at mailbox.db. What was confirmed and is in the log alone is no part of it
// yet; the log has checksums, and is checked when it is read.
//
// bbolt keeps no checksums of its pages, so a changed byte inside a value is not
// seen here, unless it is one of the store's own records.
func (db *DB) Check(ctx context.Context, fn func(problem error) bool) error {
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()
	if db.age != nil && !fn(db.age) {
		return nil
	}
	for {
		// Of a store that has failed nothing is asked: bbolt may hold its locks for ever.
		if err := db.failure(); err != nil {
			return err
		}
		tx, err := db.bolt.Begin(false)
		if err != nil {
			return fmt.Errorf("check the store: %w", err)
		}
		f, err := db.pagesOf(uint64(tx.ID()))
		if !errors.Is(err, errOverwritten) {
			defer db.giveUp(tx)
			if err != nil {
				return err
			}
			return checkPages(ctx, f, nil, fn)
		}
		db.giveUp(tx)
	}
}

// giveUp ends a transaction that has only read.
func (db *DB) giveUp(tx *bbolt.Tx) {
	if !rollback(tx) {
		db.giveUpBolt()
	}
}

// Refused returns nil, or, of a store that is open for reading, why Open would refuse it
// for its age: the state that is read may be an old one, and nobody can go on with it
// before that is accepted.
func (db *DB) Refused() error { return db.age }

// errOverwritten: two commits since a transaction began have overwritten the meta
// page that it goes by.
var errOverwritten = errors.New("the meta page is overwritten")

// pagesOf returns the state that the open transaction tx reads.
func (db *DB) pagesOf(tx uint64) (pageFile, error) {
	f := pageFile{r: db.file, size: db.size()}
	good, _ := readMetas(f.r, f.size)
	for _, m := range good {
		if m.tx == tx {
			f.meta = m
			return f, f.checkMeta()
		}
	}
	return f, errOverwritten
}

// CheckFile is DB.Check for the store in dir that Open refuses. Nobody may have
// it open for writing.
func CheckFile(ctx context.Context, dir string, fn func(problem error) bool) error {
	lock, err := lockDir(dir, true)
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
	}
	if _, err := readMark(dir); err != nil && !fn(err) {
		return nil
	}
	name := filepath.Join(dir, DataFile)
	file, err := openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return fileRefusal("check the store in "+dir, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fileRefusal("check the store in "+dir, err)
	}
	f, bad, err := openPages(file, info.Size())
	if err != nil {
		fn(err)
		return nil
	}
	if err := checkPages(ctx, f, bad, fn); err != nil {
		return err
	}
	// What the log says, if the database can say which it is.
	if s, err := stateOf(name); err == nil {
		if _, _, err := replay(dir, s); err != nil {
			fn(err)
		}
	}
	return nil
}

// checkPages reports bad, and then all that is wrong in f.
func checkPages(ctx context.Context, f pageFile, bad []error, fn func(error) bool) error {
	for _, err := range bad {
		if !fn(err) {
			return nil
		}
	}
	found := false
	w := walker{pageFile: f, ctx: ctx, full: true, report: fn}
	w.visit = func(bucket []byte, e element) {
		if bytes.Equal(bucket, metaBucket) && bytes.Equal(e.key, stateKey) {
			found = true
		}
		if err := checkEntry(bucket, e); err != nil {
			w.problem("bucket %q, key %q: %w", bucket, e.key, err)
		}
	}
	w.run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !found && !w.stop {
		w.problem("the store's own record is missing")
	}
	return nil
}

// checkEntry checks one value against the layout in key.go.
func checkEntry(bucket []byte, e element) error {
	switch {
	case bytes.Equal(bucket, metaBucket):
		if bytes.Equal(e.key, stateKey) {
			_, err := decodeState(e.value)
			return err
		}
	case bytes.Equal(bucket, countersName):
		v, err := decodeCounter(e.value)
		if err == nil && v == 0 {
			err = errors.New("a counter at 0 has an entry")
		}
		return err
	case len(bucket) == 1:
		if e.key[0] == bucket[0] {
			return nil
		}
	}
	return errors.New("it does not belong there")
}

// preflight looks at all of the file that bbolt cannot read safely if it is
// damaged: meta pages, the list of free pages, and the branches of every tree. It
// reads about one page in a hundred. It returns the first problem.
func preflight(r io.ReaderAt, size int64) error {
	f, _, err := openPages(r, size)
	if err != nil {
		return err
	}
	w := walker{pageFile: f, ctx: context.Background()}
	w.report = func(problem error) bool {
		err = problem
		return false
	}
	w.run()
	return err
}
