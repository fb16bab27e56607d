package capture

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// A reader reads the log of one slot, from one file to the next newer one, and
// goes on when there is more.
type reader struct {
	path  string // of the current file
	actor string
	slot  int

	log     *os.File      // nil = none is open yet
	index   *bufio.Reader // nil = there is none
	indexF  *os.File      // what index reads
	cut     []byte        // the begin of an index line that is not complete yet
	off     int64         // of log: what is before it was read
	span    span          // what off is in
	next    *span         // what comes after span, if known already
	window  []byte        // bytes of log
	from    int64         // where window begins
	patient bool          // wait for the index to cover the end of log
	waiting time.Time     // since when; zero = nothing waits
	last    time.Time     // of the last line
	note    string        // is the next line; "" = there is none
	line    Line
	err     error
}

// A span is a range of the file with one origin.
type span struct {
	end  int64
	run  indexed // stream "" and at 0 where the index says nothing
	open bool    // its last line may go on behind it
}

// place opens the file in which the last n lines begin, a little before them, of those
// up to the oldest; n < 0: the oldest.
func (r *reader) place(n, oldest int) error {
	for k := 0; k <= oldest+1; k++ { // one may have been rotated since oldest was looked for
		files, err := r.openAt(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue // moved away, or being rotated
		}
		if err != nil {
			return err
		}
		off, found := int64(0), 0
		if n >= 0 {
			off, found, err = lastLines(files.log, n)
		}
		r.use(files, off)
		if err != nil {
			return err
		}
		if n >= 0 {
			if n -= found; n <= 0 {
				return nil
			}
		}
	}
	return nil
}

// A pair is a log file and its index, nil = not there (yet).
type pair struct{ log, index *os.File }

func (p pair) close() {
	if p.log != nil {
		p.log.Close()
	}
	if p.index != nil {
		p.index.Close()
	}
}

// openAt opens the kth file with its index. In a rotation the index is renamed
// after its log: if the log is still the kth after both were opened, the index
// belongs to it, or was not there yet.
func (r *reader) openAt(k int) (pair, error) {
	path := rotated(r.path, k)
	for {
		var p pair
		var err error
		if p.log, err = os.Open(path); err != nil {
			return pair{}, err
		}
		p.index, _ = os.Open(path + indexSuffix)
		mine, err := p.log.Stat()
		if err != nil {
			p.close()
			return pair{}, err
		}
		if at, err := os.Stat(path); err == nil && os.SameFile(mine, at) {
			return p, nil
		}
		p.close()
	}
}

// lastLines finds the offset at which the last n lines of f begin, and how many
// there are, at most n.
func lastLines(f *os.File, n int) (off int64, found int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	end := info.Size()
	if n == 0 {
		return end, 0, nil
	}
	buf := make([]byte, readSize)
	for end > 0 {
		size := min(int64(len(buf)), end)
		if _, err := f.ReadAt(buf[:size], end-size); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		b := buf[:size]
		if end == info.Size() {
			b = bytes.TrimSuffix(b, []byte{'\n'}) // ends the last line, begins none
		}
		for {
			i := bytes.LastIndexByte(b, '\n')
			if i < 0 {
				break
			}
			if found++; found == n {
				return end - size + int64(i) + 1, found, nil
			}
			b = b[:i]
		}
		end -= size
	}
	if info.Size() > 0 {
		found++
	}
	return 0, found, nil
}

// use makes p the files that are read, from off.
func (r *reader) use(p pair, off int64) {
	r.close()
	r.log, r.off, r.span, r.next, r.window, r.waiting = p.log, off, span{end: off}, nil, nil, time.Time{}
	r.useIndex(p.index)
}

func (r *reader) useIndex(index *os.File) {
	r.cut = nil
	if index != nil {
		r.indexF, r.index = index, bufio.NewReader(index)
	}
}

func (r *reader) close() {
	pair{r.log, r.indexF}.close()
	r.log, r.indexF, r.index = nil, nil, nil
}

// head returns the next line, valid until the next call, or nil where there is
// none now, or r.err is set.
func (r *reader) head() *Line {
	for r.err == nil {
		if r.note != "" {
			r.line = Line{Actor: r.actor, Slot: r.slot, Time: r.last, Text: []byte(r.note)}
			r.note = ""
			return &r.line
		}
		if r.off < r.span.end {
			if r.read() {
				return &r.line
			}
			continue
		}
		if r.next != nil {
			r.span, r.next = *r.next, nil
			continue
		}
		if !r.advance() {
			return nil
		}
	}
	return nil
}

// read takes one line of the span.
func (r *reader) read() bool {
	b, err := r.bytes()
	if err != nil || len(b) == 0 {
		r.err = err
		return false
	}
	text, _, ended := bytes.Cut(b, []byte{'\n'})
	n := int64(len(text))
	if ended {
		n++
	}
	r.off += n
	if r.span.run.at > 0 {
		r.last = time.Unix(0, r.span.run.at)
	}
	r.line = Line{Actor: r.actor, Slot: r.slot, Time: r.last, Stream: r.span.run.stream,
		Process: r.span.run.process, Text: text, Partial: !ended && (r.off < r.span.end || r.span.open)}
	return true
}

// bytes returns what is at off, within the span: up to a newline, or maxPart, or
// the span's end.
func (r *reader) bytes() ([]byte, error) {
	want := min(r.span.end-r.off, maxPart)
	if skip := r.off - r.from; skip >= 0 && skip < int64(len(r.window)) {
		b := r.window[skip:]
		if int64(len(b)) >= want {
			return b[:want], nil
		}
		if bytes.IndexByte(b, '\n') >= 0 {
			return b, nil
		}
	}
	if r.window == nil {
		r.window = make([]byte, readSize)
	}
	r.window = r.window[:cap(r.window)]
	n, err := r.log.ReadAt(r.window, r.off)
	r.window, r.from = r.window[:n], r.off
	if int64(n) < want { // truncated meanwhile; advance sees to it
		r.span.end, r.next = r.off+int64(n), nil
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return r.window, err
	}
	return r.window[:want], nil
}

// advance finds the next span, or opens the next file; false = there is neither
// now.
func (r *reader) advance() bool {
	if r.log == nil {
		return r.openFirst()
	}
	info, err := r.log.Stat()
	if err != nil {
		r.err = err
		return false
	}
	size := info.Size()
	if size < r.off { // somebody emptied it: start again
		p, err := r.openAt(0)
		if err != nil {
			r.err = err
			return false
		}
		r.use(p, 0)
		return true
	}
	if r.index == nil && r.off < size {
		r.findIndex(info)
	}
	for {
		run, ok := r.readRun()
		if !ok {
			break
		}
		end := run.offset + run.length
		if end > size { // perhaps of bytes that were written since we looked
			if info, err = r.log.Stat(); err != nil {
				r.err = err
				return false
			}
			size = info.Size()
		}
		if end <= r.off || end > size {
			continue // read already, or of bytes that are no more
		}
		s := span{end: end, run: run, open: run.partial}
		if run.offset > r.off {
			r.span, r.next = span{end: run.offset}, &s
		} else {
			r.span = s
		}
		r.waiting = time.Time{}
		return true
	}
	if r.off < size {
		if r.patient && r.mayWait() {
			return false
		}
		r.span, r.waiting = span{end: size, open: true}, time.Time{}
		return true
	}
	r.waiting = time.Time{}
	return r.openNewer(info)
}

// mayWait gives the index, which is written after the log, time to follow.
func (r *reader) mayWait() bool {
	if r.waiting.IsZero() {
		r.waiting = time.Now()
	}
	return time.Since(r.waiting) < indexGrace
}

// findIndex opens the index of this file, if there is one by now.
func (r *reader) findIndex(this os.FileInfo) {
	at, _ := r.whereIs(this)
	if at < 0 {
		return
	}
	p, err := r.openAt(at)
	if err != nil {
		return
	}
	if same, err := p.log.Stat(); err != nil || !os.SameFile(same, this) {
		p.close()
		return
	}
	p.log.Close()
	r.useIndex(p.index)
}

// readRun reads one line of the index, if there is a whole one.
func (r *reader) readRun() (indexed, bool) {
	if r.index == nil {
		return indexed{}, false
	}
	for {
		b, err := r.index.ReadSlice('\n')
		r.cut = append(r.cut, b...)
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			return indexed{}, false
		}
		run, ok := parseRun(r.cut[:len(r.cut)-1])
		r.cut = r.cut[:0]
		if ok {
			return run, true
		}
	}
}

func (r *reader) openFirst() bool {
	p, err := r.openAt(0)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.err = err
		}
		return false
	}
	r.use(p, 0)
	return true
}
