package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"

	"github.com/sovereign-run/sovereign/refusal"
)

// Pin calls fn with what a copy of mailbox.db as of now needs besides the file
// itself: head, the bytes that it begins with, and its size in bytes. Until fn
// returns, all that counts of the file behind head stays as it is, so that anybody
// can copy it, at any speed. Updates go on meanwhile, and the file grows with what
// they write, as with a long View. Restore makes a store of the copy.
func (db *DB) Pin(ctx context.Context, fn func(head []byte, size int64) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := db.life.enter(); err != nil {
		return err
	}
	defer db.life.leave()
	if err := db.failure(); err != nil {
		return err
	}
	if db.options.ReadOnly && db.layers.Load().active.salt != 0 {
		return refusal.New(refusal.WrongState, "back up the store", "it was not closed in order, and its log holds what "+DataFile+" does not", "use Backup")
	}
	if err := db.moveLog(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	defer func() { _ = rollback(tx) }()
	head, err := headOf(tx, 2*db.bolt.Info().PageSize)
	if err != nil {
		return fileRefusal("back up the store", err)
	}
	label(head, uint64(tx.ID()))
	return fn(head, tx.Size())
}

// moveLog moves all that was confirmed by now from the log into mailbox.db.
func (db *DB) moveLog() error {
	if db.options.ReadOnly {
		return nil
	}
	return db.move(db.visible.Load(), false, db.moveHook)
}

// headOf returns the first n bytes of a copy of what tx reads: the meta pages, which
// the file itself has overwritten a commit later.
func headOf(tx *bbolt.Tx, n int) ([]byte, error) {
	head := &first{left: n}
	if _, err := tx.WriteTo(head); err != nil && head.left > 0 {
		return nil, err
	}
	return head.b, nil
}

// first is a writer that keeps what it is given until it has enough, and then fails.
type first struct {
	b    []byte
	left int
}

var errEnough = errors.New("enough has been written")

func (f *first) Write(b []byte) (int, error) {
	n := min(len(b), f.left)
	f.b = append(f.b, b[:n]...)
	if f.left -= n; n < len(b) {
		return n, errEnough
	}
	return n, nil
}

// Backup writes a copy of mailbox.db, as it is when it begins, to w (see Pin).
// begun, which may be nil, is told the size of the copy in bytes before the first
// of them is written. What goes wrong with w is returned as w has said it.
//
// A store that is open for reading and was not closed in order needs room for one
// more copy, while it is made: in the folder scratch, where nothing of it can be left.
func (db *DB) Backup(ctx context.Context, w io.Writer, scratch string, begun func(size int64)) error {
	if db.options.ReadOnly && db.layers.Load().active.salt != 0 {
		return db.backupReplayed(ctx, w, scratch, begun)
	}
	return db.Pin(ctx, func(head []byte, size int64) error {
		if begun != nil {
			begun(size)
		}
		to := &stoppable{ctx: ctx, w: w}
		_, err := to.Write(head)
		if err == nil {
			_, err = io.Copy(to, io.NewSectionReader(db.file, int64(len(head)), size-int64(len(head))))
		}
		if err != nil {
			return fmt.Errorf("back up the store: %w", err)
		}
		return nil
	})
}

// backupReplayed is Backup of a store that is open for reading and was not closed in
// order: it moves the log into a copy of mailbox.db in the folder scratch.
func (db *DB) backupReplayed(ctx context.Context, w io.Writer, scratch string, begun func(size int64)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("back up the store", p)
		} else if err != nil {
			err = fmt.Errorf("back up the store: %w", err)
		}
	}()
	f, err := nameless(scratch)
	if err != nil {
		return err
	}
	defer f.Close() // if bbolt has not
	if _, err := io.Copy(&stoppable{ctx: ctx, w: f}, io.NewSectionReader(db.file, 0, db.size())); err != nil {
		return err
	}
	d, err := bbolt.Open(f.Name(), 0o600, &bbolt.Options{Timeout: 1, FreelistType: bbolt.FreelistMapType,
		NoSync:   true, // nobody will look for it
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return f, nil }})
	if err != nil {
		return err
	}
	err = d.Update(func(tx *bbolt.Tx) error {
		_, _, err := db.write(tx, db.layers.Load(), db.visible.Load(), 0)
		return err
	})
	if err == nil {
		err = copyAll(&stoppable{ctx: ctx, w: w}, f, begun)
	}
	return errors.Join(err, d.Close())
}

// copyAll copies the file f to w, after begun, which may be nil, was told its size.
func copyAll(w io.Writer, f *os.File, begun func(size int64)) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if begun != nil {
		begun(info.Size())
	}
	_, err = io.Copy(w, io.NewSectionReader(f, 0, info.Size()))
	return err
}

// nameless returns a new file in the folder dir that has no name any more, so that its
// room is given back with its last descriptor, whatever happens.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".sovereign-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// stoppable is a writer that fails once its context is done.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s *stoppable) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(b)
}
