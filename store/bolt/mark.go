package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// markBlock is how far the mark is kept ahead of the numbers in use: one synced
// write of the mark pays for so many.
const markBlock = 1 << 20

const (
	markMagic = "sovmark1"
	markSize  = 8 + idSize + 5*8 + 1 + 4
)

// mark is the content of mailbox.mark: what must not be forgotten when the
// database is lost, or an older copy of it is put in its place.
//
// Invariant: no number greater than token (or sequence) was ever committed, and
// the database has been opened for writing generation times.
type mark struct {
	id         [idSize]byte
	epoch      uint64
	generation uint64 // 0: the database is being created and was never used
	token      uint64
	sequence   uint64
	// clean says that the store was closed in order: token and sequence are
	// exact, and batch is the database's last.
	clean bool
	batch uint64
}

// errNoMark: there is no mark. errBadMark: there is one, but it is damaged.
var (
	errNoMark  = errors.New("the high-water mark is missing")
	errBadMark = errors.New("the high-water mark is damaged")
)

func (m mark) encode() []byte {
	b := make([]byte, 0, markSize)
	b = append(b, markMagic...)
	b = append(b, m.id[:]...)
	b = binary.BigEndian.AppendUint64(b, m.epoch)
	b = binary.BigEndian.AppendUint64(b, m.generation)
	b = binary.BigEndian.AppendUint64(b, m.token)
	b = binary.BigEndian.AppendUint64(b, m.sequence)
	b = binary.BigEndian.AppendUint64(b, m.batch)
	if m.clean {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMark(b []byte) (mark, error) {
	if len(b) != markSize || string(b[:8]) != markMagic ||
		crc32.Checksum(b[:markSize-4], castagnoli) != binary.BigEndian.Uint32(b[markSize-4:]) {
		return mark{}, errBadMark
	}
	var m mark
	copy(m.id[:], b[8:])
	n := b[8+idSize:]
	m.epoch = binary.BigEndian.Uint64(n)
	m.generation = binary.BigEndian.Uint64(n[8:])
	m.token = binary.BigEndian.Uint64(n[16:])
	m.sequence = binary.BigEndian.Uint64(n[24:])
	m.batch = binary.BigEndian.Uint64(n[32:])
	m.clean = n[40] == 1
	return m, nil
}

// readMark returns the mark in dir; errNoMark and errBadMark are expected. What is no
// file, or cannot be read for the disk's sake, is a damaged one.
func readMark(dir string) (mark, error) {
	name := filepath.Join(dir, MarkFile)
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return mark{}, errNoMark
	}
	if err != nil {
		return mark{}, err
	}
	if err := strange(MarkFile, info.Mode()); err != nil {
		return mark{}, fmt.Errorf("%w: %w", errBadMark, err)
	}
	f, err := openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return mark{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, markSize+1))
	if errors.Is(err, unix.EIO) {
		return mark{}, fmt.Errorf("%w: %w", errBadMark, err)
	}
	if err != nil {
		return mark{}, err
	}
	return decodeMark(b)
}

// writeMark replaces the mark in dir. On return the new one is on disk. After an
// error, and after a crash at any point, the old one or the new one is there.
func writeMark(dir string, m mark) error {
	name := filepath.Join(dir, MarkFile)
	// Nothing can be renamed over a folder. Who comes here with one has accepted that
	// there is no mark.
	if info, err := os.Lstat(name); err == nil && info.IsDir() {
		if err := renameAside(name); err != nil {
			return err
		}
	}
	return replaceFile(name, m.encode())
}

// replaceFile puts b in the place of the file name, wholly or not at all.
func replaceFile(name string, b []byte) error {
	// 1. Write beside it. A crash leaves a .new that the next write removes: it may be
	// another user's.
	if err := os.Remove(name + unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := openFile(name+unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	// 2. Sync before the rename: else the name could reach the disk before the
	// content, and a power cut would leave an empty file in its place.
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	// 3. Rename. A crash after it leaves the old or the new file.
	if err := os.Rename(name+unfinished, name); err != nil {
		return err
	}
	// 4. Sync the folder: from here on it is the new one.
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncAncestors makes the names of dir and of the folders above it durable, which
// Open may have created. Folders that we may not read or that cannot be synced are
// left out: they are not of our making.
func syncAncestors(dir string) error {
	at, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at != filepath.Dir(at) {
		at = filepath.Dir(at)
		if err := syncDir(at); errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return nil
}
