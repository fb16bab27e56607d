package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Content is all that a log file holds.
type Content []byte

// maxContent bounds the file that Load reads into memory.
const maxContent = 2 * MaxRecord

// Load reads the log file name. No file is an empty one.
func Load(name string) (Content, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxContent {
		return nil, fmt.Errorf("%s has %d bytes, more than a log can have", name, info.Size())
	}
	b := make([]byte, info.Size())
	_, err = io.ReadFull(f, b)
	return b, err
}

// Head returns the number and the content of the head of the use with that salt;
// false if it is not what the file was last used for.
func (c Content) Head(salt uint64) (number uint64, head []byte, ok bool) {
	head, number, ok = parse(c, salt)
	return number, head, ok
}

// Records calls fn with the records of the use with that salt, in order, without the
// head, up to the first that cannot be read, and while fn returns nil. The payload
// is a part of c.
func (c Content) Records(salt uint64, fn func(number uint64, payload []byte) error) error {
	head, _, ok := parse(c, salt)
	for at := int64(0); ok; {
		at = aligned(at + HeaderLen + int64(len(head)))
		if at >= int64(len(c)) {
			return nil
		}
		var number uint64
		head, number, ok = parse(c[at:], salt)
		if ok {
			if err := fn(number, head); err != nil {
				return err
			}
		}
	}
	return nil
}

// Last returns the greatest number of a record of that salt, wherever in the file it
// lies, 0 if there is none. If it is greater than the last of Records, one before it
// is damaged.
func (c Content) Last(salt uint64) (last uint64) {
	for at := 0; at+HeaderLen <= len(c); at += align {
		if binary.BigEndian.Uint64(c[at+8:]) != salt {
			continue
		}
		if _, number, ok := parse(c[at:], salt); ok {
			last = max(last, number)
		}
	}
	return last
}
