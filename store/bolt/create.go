package bolt

import (
	"errors"
	"io/fs"
	"os"

	bbolt "go.etcd.io/bbolt"
)

// create puts an empty database into the folder, under the mark m.
func (db *DB) create(m mark) error {
	doing := "create the store in " + db.dir
	// 0. The name of the folder itself. It comes first: once there is a database,
	// nobody comes here again.
	if err := syncAncestors(db.dir); err != nil {
		return fileRefusal(doing, err)
	}
	if m.generation == 0 {
		// 1. The mark of a store that was never used. A crash after it leaves a
		// mark without a database, of generation 0: planCreation starts over.
		if err := writeMark(db.dir, m); err != nil {
			return fileRefusal(doing, err)
		}
		db.options.reached("mark created")
	}
	// 2. The database under another name. A crash leaves a file that the next
	// creation removes.
	temp := db.temp()
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileRefusal(doing, err)
	}
	s := state{
		schema: schemaVersion, id: m.id, epoch: m.epoch, generation: m.generation,
		token: m.token, sequence: m.sequence,
	}
	if err := createData(temp, s); err != nil {
		return fileRefusal(doing, err)
	}
	db.options.reached("database created")
	// 3. Its name. A crash after it leaves an ordinary store that was never used.
	if err := os.Rename(temp, db.path()); err != nil {
		return fileRefusal(doing, err)
	}
	if err := syncDir(db.dir); err != nil {
		return fileRefusal(doing, err)
	}
	db.options.reached("database named")
	return nil
}

func createData(name string, s state) error {
	d, err := bbolt.Open(name, 0o600, &bbolt.Options{Timeout: 1, OpenFile: openFile, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = d.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket(countersName); err != nil {
			return err
		}
		return b.Put(stateKey, s.encode(nil))
	})
	return errors.Join(err, d.Close())
}

// distrustCache has the database be read from the disk.
func (db *DB) distrustCache() error {
	f, err := openFile(db.path(), os.O_RDONLY, 0)
	if err == nil {
		err = errors.Join(dropCache(f), f.Close())
	}
	if err != nil {
		return fileRefusal("open the store in "+db.dir, err)
	}
	return nil
}
