package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// HeaderLen is the room that a record begins with and that Append fills in:
//
//	offset  bytes
//	     0      4  CRC-32C of all behind it
//	     4      4  length of the record, header included
//	     8      8  salt
//	    16      8  number
//	    24      4  records before it, in this file, that were not known to be durable
//	    28      4  bytes that the file was known to have
const HeaderLen = 32

// olderHeaderLen is what logs of older builds have in place of HeaderLen: their records
// do not say how long the file is. They are read, and never appended to.
const olderHeaderLen = 24

// align is where records may begin: at multiples of it.
const align = 8

// MaxRecord bounds a record, header included.
const MaxRecord = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A File is a log that is open for appending. It is used by one goroutine at a time.
type File struct {
	f        *os.File
	salt     uint64
	at       int64 // where the next record begins
	tried    int64 // where the last Append put its record, or was to
	ready    int64 // bytes that were written once, and need no room on the disk
	sized    int64 // bytes that the file keeps through a power cut: those of the last Sync
	unsynced int   // records behind the last Sync
}

// Open makes a log of the file f, which is open for reading and writing and belongs
// to the log from then on, also after an error. Nothing can be appended before Begin.
func Open(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f: f, ready: info.Size()}, nil
}

// Begin starts a new use of the file, with a salt that no use before it had, and
// with a head (see Append). All that was in the file counts no more, once this or
// something behind it is synced; it is not synced on return.
func (l *File) Begin(salt, number uint64, head []byte) error {
	l.salt, l.at, l.tried, l.unsynced = salt, 0, 0, 0
	seal(head, salt, number, 0, l.sized)
	if err := l.MakeReady(int64(len(head))); err != nil {
		return err
	}
	if _, err := l.f.WriteAt(head, 0); err != nil {
		return err
	}
	l.at = aligned(int64(len(head)))
	return nil
}

// Begun is Content.Begun of what is in the file.
func (l *File) Begun() (bool, error) {
	head := make(Content, olderHeaderLen)
	n, err := l.f.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n].Begun(), err
}

// Append writes a record, whose first HeaderLen bytes it fills in, behind the last
// one, and syncs it: after nil it is durable, with all before it. After an error nothing
// is appended, unless Holds says that the record is there. A later Append writes in its
// place.
func (l *File) Append(number uint64, record []byte) error {
	if err := l.put(number, record); err != nil {
		return err
	}
	if err := l.Sync(); err != nil {
		return err
	}
	l.at = aligned(l.at + int64(len(record)))
	return nil
}

// AppendUnsynced is Append without the sync: the record is durable with the next Append or
// Sync, and until then a power cut takes it, or any part of it. The end of the process
// does not.
func (l *File) AppendUnsynced(number uint64, record []byte) error {
	if err := l.put(number, record); err != nil {
		return err
	}
	l.at = aligned(l.at + int64(len(record)))
	l.unsynced++
	return nil
}

// put writes a record behind the last one.
func (l *File) put(number uint64, record []byte) error {
	seal(record, l.salt, number, l.unsynced, l.sized)
	l.tried = l.at
	if err := l.MakeReady(int64(len(record))); err != nil {
		return err
	}
	_, err := l.f.WriteAt(record, l.at)
	return err
}

// Holds reports whether the record number can be read where the last Append, which
// failed, was to put it. If not, it was never handed over whole, and can come to the
// disk no more.
func (l *File) Holds(number uint64) (bool, error) {
	info, err := l.f.Stat()
	if err != nil {
		return false, err
	}
	rest := info.Size() - l.tried
	if rest < HeaderLen {
		return false, nil
	}
	header := make([]byte, HeaderLen)
	if _, err := l.f.ReadAt(header, l.tried); err != nil {
		return false, err
	}
	n := int64(binary.BigEndian.Uint32(header[4:]))
	if n < HeaderLen || n > rest {
		return false, nil
	}
	record := make([]byte, n)
	if _, err := l.f.ReadAt(record, l.tried); err != nil {
		return false, err
	}
	_, found, ok := parse(record, l.salt, HeaderLen)
	return ok && found == number, nil
}

// Sync makes what was written durable. After an error it is not known what is, now or
// after another Sync.
func (l *File) Sync() error {
	if err := datasync(l.f); err != nil {
		return err
	}
	l.sized, l.unsynced = l.ready, 0
	return nil
}

// Settle syncs the file unless it is known to keep its length, so that all records
// from now on say how long it is (see Content.Beyond).
func (l *File) Settle() error {
	if l.sized == l.ready {
		return nil
	}
	return l.Sync()
}

// Len returns the bytes of this use so far.
func (l *File) Len() int64 { return l.at }

// Size returns the bytes of the file.
func (l *File) Size() int64 { return l.ready }

// Grow makes the file size bytes long, if it is shorter, by writing zeros, so that
// records of so many bytes in all need no more room on the disk. They are durable
// with the next sync.
func (l *File) Grow(size int64) error {
	zeros := make([]byte, min(max(size-l.ready, 0), 256<<10))
	for l.ready < size {
		n, err := l.f.WriteAt(zeros[:min(int64(len(zeros)), size-l.ready)], l.ready)
		l.ready += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// MakeReady makes room for n more bytes (see Grow). The file doubles, or grows by
// 1 MiB, so that it does so seldom. Append and Begin do that by themselves.
func (l *File) MakeReady(n int64) error {
	if l.at+n <= l.ready {
		return nil
	}
	if err := l.Grow(max(l.ready+min(l.ready, 1<<20), aligned(l.at+n))); err != nil {
		return fmt.Errorf("make the log longer: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *File) Close() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}

func aligned(n int64) int64 { return (n + align - 1) / align * align }

// seal fills in the header of record, for a file of which size bytes are known to be
// there, behind so many unsynced records.
func seal(record []byte, salt, number uint64, unsynced int, size int64) {
	binary.BigEndian.PutUint32(record[4:], uint32(len(record)))
	binary.BigEndian.PutUint64(record[8:], salt)
	binary.BigEndian.PutUint64(record[16:], number)
	binary.BigEndian.PutUint32(record[24:], uint32(unsynced))
	binary.BigEndian.PutUint32(record[28:], uint32(size))
	binary.BigEndian.PutUint32(record, crc32.Checksum(record[4:], castagnoli))
}

// parse returns what lies behind the header, of so many bytes, of the record that b
// begins with, and its number; false if b does not begin with a record of that salt.
func parse(b []byte, salt uint64, header int) (payload []byte, number uint64, ok bool) {
	if len(b) < header || binary.BigEndian.Uint64(b[8:]) != salt {
		return nil, 0, false
	}
	n := int64(binary.BigEndian.Uint32(b[4:]))
	if n < int64(header) || n > int64(len(b)) || crc32.Checksum(b[4:n], castagnoli) != binary.BigEndian.Uint32(b) {
		return nil, 0, false
	}
	return b[header:n:n], binary.BigEndian.Uint64(b[16:]), true
}
