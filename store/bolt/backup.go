package bolt

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
)

// Backup writes a copy of mailbox.db, as it is when it begins, to w. Updates go
// on meanwhile, and the file grows with what they write, as with a long View.
// begun, which may be nil, is told the size of the copy in bytes before the first
// of them is written. Restore makes a store of the copy.
func (db *DB) Backup(ctx context.Context, w io.Writer, begun func(size int64)) error {
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()
	if err := db.failure(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	defer func() { _ = rollback(tx) }()
	if begun != nil {
		begun(tx.Size())
	}
	to := &stoppable{ctx: ctx, w: w}
	if _, err := tx.WriteTo(to); err != nil {
		if to.err != nil {
			err = to.err // bbolt keeps only its text
		}
		return fileRefusal("back up the store", err)
	}
	return nil
}

// stoppable is a writer that fails once its context is done, and remembers why.
type stoppable struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (s *stoppable) Write(b []byte) (n int, err error) {
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	} else {
		n, err = s.w.Write(b)
	}
	s.err = err
	return n, err
}
