package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sovereign-run/sovereign/refusal"
)

// The reserve is a share of the disk, within bounds: it holds a few of the
// largest updates (store.MaxBytes), and some thousand ordinary ones.
const (
	reserveShare = 32 // of the whole disk: one part in so many
	reserveLeast = 128 << 10
	reserveMost  = 16 << 20
)

// reserve is room for essential updates (store.Essential) on a disk that is full:
// a file whose blocks are given back when one of them finds no room, and taken
// again once there is room. While they are given back all other updates are
// refused, or they would use up what was kept. It is the leader's.
//
// Nothing is lost with the file: a store without it is one whose reserve has
// been used.
type reserve struct {
	file *os.File
	size int64 // bytes wanted; 0: this disk or folder cannot keep a reserve
	held bool
}

// openReserve opens the reserve of the folder dir and takes what room there is. What
// is no file of the store's own is refused.
func openReserve(dir string) (reserve, error) {
	f, err := openFile(filepath.Join(dir, ReserveFile), os.O_RDWR|os.O_CREATE, 0o600)
	if _, ok := errors.AsType[*strangeError](err); ok {
		return reserve{}, fileRefusal("open the store in "+dir, err)
	}
	if err != nil {
		return reserve{}, nil // no room for a name, or not ours: go on without
	}
	r := reserve{file: f, size: reserveSize(f)}
	r.take()
	return r, nil
}

// reserveSize is how much to keep on the disk that holds f.
func reserveSize(f *os.File) int64 {
	var s unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &s) != nil || s.Blocks == 0 {
		return reserveLeast
	}
	whole := min(s.Blocks, 1<<40) * uint64(s.Bsize)
	return int64(min(max(whole/reserveShare, reserveLeast), reserveMost))
}

// take makes the file as large as is wanted, all of it on the disk, or empty. It
// reports whether the room is held; where a reserve cannot be kept at all, true.
func (r *reserve) take() bool {
	if r.held || r.size == 0 {
		return true
	}
	err := r.file.Truncate(min(r.size, r.length()))
	if err == nil {
		err = allocate(r.file, r.size)
	}
	if err == nil {
		r.held = true
		return true
	}
	// What was had of it must not stay: it would be missing elsewhere.
	_ = r.file.Truncate(0)
	if !isFull(err) {
		r.size = 0
	}
	return r.size == 0
}

func (r *reserve) length() int64 {
	info, err := r.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// release gives the room back to the disk, and reports whether there was any.
func (r *reserve) release() bool {
	if !r.held {
		return false
	}
	r.held = false
	// The sync is not for the file's sake: with a journal, freed blocks may be kept
	// from others until it has been written.
	return errors.Join(r.file.Truncate(0), r.file.Sync()) == nil
}

func (r *reserve) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// fill writes size bytes, where the system knows no other way to allocate them.
func fill(f *os.File, size int64) error {
	b := make([]byte, 64<<10)
	for i := range b {
		b[i] = byte(i) | 1 // zeros might be stored as a hole
	}
	for at := int64(0); at < size; at += int64(len(b)) {
		if _, err := f.WriteAt(b[:min(int64(len(b)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// withReserve calls fn, which writes something essential, and once more with the
// reserve given back if there was no room.
func (db *DB) withReserve(fn func() error) error {
	err := fn()
	if refusal.Has(err, refusal.DiskFull) && db.reserve.release() {
		return fn()
	}
	return err
}

// reserveUsed is the refusal for an update that is not essential while the
// reserve is in use.
func reserveUsed(dir string) error {
	return fullRefusal("commit to the store; nothing was stored",
		fmt.Errorf("the disk of %s is full, and what is kept for the end of running work is in use", dir))
}
