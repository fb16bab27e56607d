package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// indexSuffix is added to a log file's name for its index.
const indexSuffix = ".idx"

// A file is a slot's current log file with its index. It is used by one
// goroutine at a time.
type file struct {
	path    string
	maxSize int64
	keep    int
	files   *Files

	taken bool // of files: this log may have its files open

	restAgain func() // has rest called once there is nothing to write; anybody may call it

	log     *os.File        // nil = to be opened
	index   *os.File        // nil while log is; a broken index does not break the log
	size    int64           // of log, as far as we wrote it
	runs    []byte          // index lines that are not written yet
	settled <-chan struct{} // closed once the file rotated last is on disk; nil = none was
}

// write appends the segments of data. lost bytes were not written, because of
// err; the next write tries anew. untold bytes were lost before, because of
// cause: a note of that is put first, and told reports that it is in the file.
func (f *file) write(data []byte, segments []segment, untold int64, cause error) (told bool, lost int, err error) {
	defer f.writeIndex()
	if err := f.open(); err != nil {
		f.close()
		return false, len(data), err
	}
	if untold > 0 {
		note := lossNote(untold, cause)
		if _, err := f.append([]byte(note), segment{size: len(note), at: time.Now().UnixNano(), stream: ""}); err != nil {
			f.close()
			return false, len(data), err
		}
	}
	for len(segments) > 0 {
		var n int
		count, size := fitting(segments, f.maxSize-f.size)
		if count > 0 {
			n, err = f.append(data[:size], segments[:count]...)
		} else {
			count, size = 1, segments[0].size
			n, err = f.segment(data[:size], segments[0])
		}
		if err != nil {
			f.close() // opened again next time, perhaps in a folder made anew
			return untold > 0, len(data) - n, err
		}
		data, segments = data[size:], segments[count:]
	}
	return untold > 0, 0, nil
}

// fitting are the segments that go into room whole, one after the other, and their size
// together.
func fitting(segments []segment, room int64) (count, size int) {
	for _, s := range segments {
		if int64(size+s.size) > room {
			break
		}
		count++
		size += s.size
	}
	return count, size
}

func lossNote(n int64, cause error) string {
	why := "the disk did not keep up"
	if cause != nil {
		why = cause.Error()
	}
	return fmt.Sprintf("[sovereign: %d bytes of output lost here: %s]\n", n, why)
}

// segment appends one segment, cut at line ends where the file is full.
func (f *file) segment(run []byte, s segment) (written int, err error) {
	for len(run) > 0 {
		cut := fit(run, f.size, f.maxSize)
		if cut == 0 {
			if err := f.rotate(); err != nil {
				return written, err
			}
			continue
		}
		part := s
		part.size = cut
		part.partial = s.partial && cut == len(run)
		n, err := f.append(run[:cut], part)
		written += n
		if err != nil {
			return written, err
		}
		run = run[cut:]
	}
	return written, nil
}

// fit is how much of run goes into a file of this size: all of it, or its lines
// that fit, or, where there is no room for the first, 0 for "rotate first". A
// line that is longer than a whole file goes into one of its own.
func fit(run []byte, size, maxSize int64) int {
	room := maxSize - size
	if int64(len(run)) <= room {
		return len(run)
	}
	if room > 0 {
		if i := bytes.LastIndexByte(run[:room], '\n'); i >= 0 {
			return i + 1
		}
	}
	if size > 0 {
		return 0
	}
	if i := bytes.IndexByte(run, '\n'); i >= 0 {
		return i + 1
	}
	return len(run)
}

// append writes the runs of segments, whose sizes add up to len(data), with one system
// call, and remembers their lines of the index.
func (f *file) append(data []byte, segments ...segment) (int, error) {
	n, err := f.log.Write(data)
	left := n
	for _, s := range segments {
		size := min(left, s.size)
		if size == 0 {
			break
		}
		f.runs = appendRun(f.runs, indexed{offset: f.size, length: int64(size), at: s.at,
			stream: s.stream, process: s.process, partial: s.partial || size < s.size})
		f.size += int64(size)
		left -= size
	}
	if err == nil && n < len(data) {
		err = errShort
	}
	return n, err
}

// writeIndex comes after the bytes: a crash in between leaves bytes without
// time, never times without bytes. Its failure is of no consequence.
func (f *file) writeIndex() {
	if f.index != nil && len(f.runs) > 0 {
		f.index.Write(f.runs)
	}
	f.runs = f.runs[:0]
}

func (f *file) open() error {
	if f.log != nil {
		gone, err := f.followSize()
		if err != nil || !gone {
			return err
		}
		f.close()
	}
	if !f.taken {
		f.files.take()
		f.taken = true
	}
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		os.Remove(f.path + indexSuffix) // of a file that was moved away; before a reader can pair it with the new one
	}
	log, err := os.OpenFile(f.path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(f.path), 0o700); err == nil {
			log, err = os.OpenFile(f.path, flags, 0o600)
		}
	}
	if err != nil {
		return err
	}
	info, err := log.Stat()
	if err != nil {
		log.Close()
		return err
	}
	f.log, f.size = log, info.Size()
	f.index, _ = os.OpenFile(f.path+indexSuffix, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if f.index != nil {
		trimIndex(f.index, f.size)
	}
	return nil
}

// followSize notices that somebody truncated the file (logrotate's
// copytruncate): then the index starts anew. gone says that somebody removed it: what is
// written to it is kept nowhere. One that was moved is not gone; see reopen.
func (f *file) followSize() (gone bool, err error) {
	info, err := f.log.Stat()
	if err != nil {
		return false, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink == 0 {
		return true, nil
	}
	if info.Size() < f.size && f.index != nil {
		f.index.Truncate(0)
	}
	f.size = info.Size()
	return false, nil
}

// rotate makes .log .log.1, .log.1 .log.2, and so on, each with its index, and
// starts a new file. A crash in between leaves a gap in the numbers. The file that
// was rotated before is on disk when it returns, and this one is on its way there.
func (f *file) rotate() error {
	if f.keep == 0 {
		f.close()
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return f.open()
	}
	f.writeIndex() // before the wait: who follows the log waits for it, and not for long
	if f.settled != nil {
		<-f.settled
	}
	full, index := f.log, f.index
	f.log, f.index = nil, nil
	defer func() { f.settled = settle(full, index) }()
	for n := f.keep; n > 0; n-- {
		from, to := rotated(f.path, n-1), rotated(f.path, n)
		os.Remove(to + indexSuffix) // its log goes; a crash right after leaves the new one without times, not with another's
		if err := os.Rename(from, to); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		if os.Rename(from+indexSuffix, to+indexSuffix) != nil {
			os.Remove(to + indexSuffix) // else the file would get another's times
		}
	}
	return f.open()
}

// reopen lets go of a file that somebody else moved.
func (f *file) reopen() { f.close() }

func (f *file) close() {
	f.writeIndex()
	if f.log != nil {
		f.log.Close()
		f.log = nil
	}
	if f.index != nil {
		f.index.Close()
		f.index = nil
	}
	if f.taken {
		f.files.give(f)
		f.taken = false
	}
}

// rest is called when there is nothing more to write for now.
func (f *file) rest() {
	if f.taken && !f.files.stay(f) {
		f.close()
	}
}
