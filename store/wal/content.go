package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Content is all that a log file holds.
type Content []byte

// maxContent bounds the file that Load reads into memory.
const maxContent = 2 * MaxRecord

// ErrUnreadable: what has the name of a log file is none, or the disk does not give its
// content back. It will not read better another time.
var ErrUnreadable = errors.New("it cannot be read")

// Check returns ErrUnreadable, with the reason, if f is larger than a log file can be.
func Check(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Size() > maxContent {
		err = fmt.Errorf("%w: it has %d bytes, more than a log can have", ErrUnreadable, info.Size())
	}
	return err
}

// Load reads the log file f. It fails with ErrUnreadable as Check does, and where the
// disk fails.
func Load(f *os.File) (Content, error) {
	if err := Check(f); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	if _, err = f.ReadAt(b, 0); errors.Is(err, unix.EIO) {
		err = fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return b, err
}

// Begun reports whether the file was ever begun (see File.Begin) since it was made of
// zeros: no crash takes that back.
func (c Content) Begun() bool {
	for _, b := range c[:min(len(c), olderHeaderLen)] {
		if b != 0 {
			return true
		}
	}
	return false
}

// header returns the bytes of the header of the records of the use with that salt. Where
// a head of today says how long the file is, one of an older build begins with what its
// user put there, which must be text: no file is so long.
func (c Content) header(salt uint64) int {
	payload, _, ok := parse(c, salt, olderHeaderLen)
	if !ok || len(payload) >= 8 && binary.BigEndian.Uint64(payload) <= maxContent {
		return HeaderLen
	}
	return olderHeaderLen
}

// Head returns the number and the content of the head of the use with that salt;
// false if it is not what the file was last used for.
func (c Content) Head(salt uint64) (number uint64, head []byte, ok bool) {
	head, number, ok = parse(c, salt, c.header(salt))
	return number, head, ok
}

// Records calls fn with the records of the use with that salt, in order, without the
// head, up to the first that cannot be read, and while fn returns nil. The payload
// is a part of c.
func (c Content) Records(salt uint64, fn func(number uint64, payload []byte) error) error {
	header := c.header(salt)
	head, _, ok := parse(c, salt, header)
	for at := int64(0); ok; {
		at = aligned(at + int64(header+len(head)))
		if at >= int64(len(c)) {
			return nil
		}
		var number uint64
		head, number, ok = parse(c[at:], salt, header)
		if ok {
			if err := fn(number, head); err != nil {
				return err
			}
		}
	}
	return nil
}

// Beyond returns the greatest number of a record of that salt, wherever in the file it
// lies, that shows that something durable is missing between the record end, the last of
// Records, and itself; 0 if there is none. One that was appended while others before it
// were not durable shows that only if those are behind end as well. And it returns how many
// bytes the file had by what its records say: if it has fewer, it was cut off, since no
// crash takes them. It is 0 for a log of an older build, which does not say it.
func (c Content) Beyond(salt, end uint64) (beyond, size uint64) {
	header := c.header(salt)
	word := binary.BigEndian.AppendUint64(nil, salt)
	for from := 8; from < len(c); {
		found := bytes.Index(c[from:], word)
		if found < 0 {
			break
		}
		at := from + found - 8
		from += found + 1
		if at%align != 0 || at+header > len(c) {
			continue
		}
		_, number, ok := parse(c[at:], salt, header)
		if !ok {
			continue
		}
		unsynced := uint64(0)
		if header == HeaderLen {
			unsynced = uint64(binary.BigEndian.Uint32(c[at+24:]))
			size = max(size, uint64(binary.BigEndian.Uint32(c[at+28:])))
		}
		if number > end && (unsynced == 0 || number > end+1+unsynced) {
			beyond = max(beyond, number)
		}
	}
	return beyond, size
}
