package bolt

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
)

type counts struct {
	commits, functions, bytes atomic.Uint64
}

// Stats are counts since Open, and sizes now.
type Stats struct {
	Commits      uint64 // each of them two syncs
	Functions    uint64 // functions stored; divided by Commits, how many share one
	Bytes        uint64 // keys and values that functions wrote
	FreePages    int    // pages of the file that the next commits can use
	PendingPages int    // pages that become free when the Views that see them end
	PageSize     int    // bytes
	FileSize     int64  // bytes
}

// Stats returns numbers for metrics. It reads no page of the store.
func (db *DB) Stats() Stats {
	s := Stats{
		Commits:   db.stats.commits.Load(),
		Functions: db.stats.functions.Load(),
		Bytes:     db.stats.bytes.Load(),
	}
	if db.life.enter() != nil {
		return s
	}
	defer db.life.leave()
	b := db.bolt.Stats()
	s.FreePages, s.PendingPages = b.FreePageN, b.PendingPageN
	s.PageSize = db.bolt.Info().PageSize
	s.FileSize = db.size()
	return s
}

// Backup writes a copy of mailbox.db, as it is when it begins, to w. Updates go
// on meanwhile, and the file grows with what they write, as with a long View. A
// store is made of the copy by putting it in place and opening it with
// Options.AcceptRollback.
func (db *DB) Backup(ctx context.Context, w io.Writer) error {
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	defer func() { _ = rollback(tx) }()
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
