package bolt

import (
	"errors"
	"fmt"
	"os"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/refusal"
)

// This file opens mailbox.db itself, alone and as it is; open.go brings it together with
// its mark and its log.

// openData opens the database, after it has looked for damage that bbolt would
// not survive.
func (db *DB) openData() error {
	doing := "open the store in " + db.dir
	f, err := openFile(db.path(), os.O_RDONLY, 0)
	if err != nil {
		return fileRefusal(doing, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = preflight(f, info.Size())
		if err != nil {
			err = corruptRefusal(doing, DataFile+" is damaged: "+err.Error())
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}

	// A mapping larger than the file, so that a growing file is not mapped anew:
	// that would wait for every View. Where address space is short, do without.
	for _, size := range []int{mapSize, 0} {
		err = db.openBolt(size)
		if !errors.Is(err, unix.ENOMEM) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return refusal.New(refusal.StoreLocked, doing, "another program has "+DataFile+" open",
			"stop that program").Later()
	case refusal.Has(err, refusal.StoreCorrupt):
		return err
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return corruptRefusal(doing, DataFile+" is damaged: "+err.Error())
	}
	return fileRefusal(doing, err)
}

func (db *DB) openBolt(mapSize int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			db.file.Close() // bbolt has not, and with it goes its lock
			err = damaged("open the store in "+db.dir, p)
		}
	}()
	db.bolt, err = bbolt.Open(db.path(), 0o600, &bbolt.Options{
		Timeout:         1, // try the lock once
		ReadOnly:        db.options.ReadOnly,
		InitialMmapSize: mapSize,
		// With many free pages the array takes time in proportion to them at
		// each allocation.
		FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := openFile(name, flag, mode)
			db.file = f
			return f, err
		},
	})
	if err != nil {
		db.bolt = nil // bbolt returns a closed one
	}
	return err
}

// readState reads the state record of the open database.
func (db *DB) readState() (s state, err error) {
	doing := "open the store in " + db.dir
	defer func() {
		if p := recover(); p != nil {
			err = damaged(doing, p)
		}
	}()
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(countersName) == nil {
			return errBadRecord
		}
		s, err = readState(tx)
		return err
	})
	if err != nil {
		return s, corruptRefusal(doing, DataFile+" is damaged: "+err.Error())
	}
	if s.schema > schemaVersion {
		return s, newerSchema(doing, s)
	}
	return s, nil
}

func newerSchema(doing string, s state) error {
	return refusal.New(refusal.WrongState, doing,
		fmt.Sprintf("it was written by a newer version of sovereign: schema %d, and this one knows up to %d", s.schema, schemaVersion),
		"use that version, or restore a backup made before the upgrade")
}
