package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/sovereign-run/sovereign/refusal"
)

// MaxLine is the longest line, its newline not counted, in bytes.
const MaxLine = 8 << 20

// keepBuffer is how much of a grown buffer is kept for the next line: one long
// line does not cost its memory for as long as the connection lives.
const keepBuffer = 64 << 10

// The buffers of a reader, in bytes: every idle connection keeps a small one; the
// large one lives as long as there is something in it.
const (
	readSmall = 4 << 10
	readLarge = 64 << 10
)

// ErrLineTooLong is returned by Decoder.Line for a line beyond MaxLine. The
// line has been skipped; the next one can be read.
var ErrLineTooLong = refusal.New(refusal.BadRequest, "the line is too long",
	"a line holds at most 8 MiB", "send less in one request; keep large data in a file and send its path")

// A Decoder reads lines. It is used by one goroutine.
type Decoder struct {
	small *bufio.Reader
	r     *bufio.Reader // small, or a larger one over it while long lines come
	buf   []byte        // the line, where it is longer than the reader's buffer
	skips bool          // the rest of a line that is too long is still to be read

	// Long, where it is set, is called when a line turns out to be longer than the
	// reader's buffer, and what it returns when that line is over: who has many
	// readers can bound the long lines that are read at once, and their time.
	Long func() (over func())
}

// NewDecoder returns a decoder that reads from r.
func NewDecoder(r io.Reader) *Decoder {
	small := bufio.NewReaderSize(r, readSmall)
	return &Decoder{small: small, r: small}
}

// Line returns the next line that is not blank, without its end. It is valid
// until the next call. A line beyond MaxLine is skipped whole and reported as
// ErrLineTooLong, after which reading goes on. Any other error is the
// reader's and final; io.EOF is the regular end. What stands before the end
// without a newline is a line too.
func (d *Decoder) Line() ([]byte, error) {
	for {
		line, err := d.next()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// More reports whether another line has been read already: Line will not wait for
// the reader.
func (d *Decoder) More() bool {
	for _, r := range [2]*bufio.Reader{d.r, d.small} {
		if n := r.Buffered(); n > 0 {
			if read, _ := r.Peek(n); bytes.IndexByte(read, '\n') >= 0 {
				return true
			}
		}
	}
	return false
}

func (d *Decoder) next() ([]byte, error) {
	if cap(d.buf) > keepBuffer {
		d.buf = nil
	}
	d.buf = d.buf[:0]
	if d.skips {
		return nil, d.skip(false)
	}
	if d.r.Buffered() == 0 {
		d.r = d.small
	}
	over := func() {}
	defer func() { over() }()
	for {
		part, err := d.r.ReadSlice('\n')
		switch {
		case err == nil && len(d.buf) == 0 && len(part) <= MaxLine+1:
			return part[:len(part)-1], nil
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
			if len(d.buf)+len(bytes.TrimSuffix(part, []byte("\n"))) > MaxLine {
				d.buf = nil
				return nil, d.skip(err == nil)
			}
			if len(d.buf) == 0 && d.Long != nil {
				over = d.Long()
			}
			d.buf = append(d.buf, part...)
			if err == nil {
				return d.buf[:len(d.buf)-1], nil
			}
			if d.r == d.small {
				d.r = bufio.NewReaderSize(d.small, readLarge) // it reads past small's buffer once that is empty
			}
		case errors.Is(err, io.EOF) && len(d.buf)+len(part) > MaxLine:
			return nil, ErrLineTooLong
		case errors.Is(err, io.EOF) && len(d.buf)+len(part) > 0:
			return append(d.buf, part...), nil
		default:
			d.buf = append(d.buf, part...)
			return nil, err
		}
	}
}

// Rest is what was read of the stream after the last line that was returned, once Line
// has failed; with what is still to be read of the stream it goes on where this decoder
// has ended (Resume).
func (d *Decoder) Rest() Rest {
	r := Rest{Skips: d.skips}
	if !d.skips {
		r.Bytes = append(r.Bytes, d.buf...)
	}
	for _, b := range []*bufio.Reader{d.r, d.small} {
		more, _ := b.Peek(b.Buffered())
		r.Bytes = append(r.Bytes, more...)
		_, _ = b.Discard(len(more))
	}
	return r
}

// A Rest is a stream between two of its lines, or within one.
type Rest struct {
	Bytes []byte `json:"bytes,omitempty"`
	Skips bool   `json:"skips,omitempty"` // they belong to a line that is too long
}

// Resume returns a decoder that goes on after rest with r.
func Resume(rest Rest, r io.Reader) *Decoder {
	if len(rest.Bytes) > 0 {
		r = io.MultiReader(bytes.NewReader(rest.Bytes), r)
	}
	d := NewDecoder(r)
	d.skips = rest.Skips
	return d
}

// skip reads to the end of the line, unless that has been reached.
func (d *Decoder) skip(ended bool) error {
	d.skips = !ended
	for !ended {
		_, err := d.r.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, io.EOF):
			ended = true
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	d.skips = false
	return ErrLineTooLong
}

// An Encoder writes values as lines, each in one Write. It may be used by
// several goroutines. It keeps no memory between two lines.
type Encoder struct {
	mu sync.Mutex // held for each Write
	w  io.Writer
}

// NewEncoder returns an encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w} }

// lineBuffers are buffers for lines that are being written, of all encoders.
var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Encode writes v as one line. An error of the writer leaves the stream in the
// middle of a line: nothing more may be written to it. A value that would
// exceed MaxLine is refused, message_too_large, and nothing of it written.
func (e *Encoder) Encode(v any) error {
	buf := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(buf)
	line, err := appendLine((*buf)[:0], v)
	if cap(line) <= keepBuffer {
		*buf = line
	}
	if err != nil {
		return err
	}
	if len(line) > MaxLine+1 {
		return refusal.New(refusal.MessageTooLarge, "the line would be too long", "a line holds at most 8 MiB", "ask for less at once")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err = e.w.Write(line)
	return err
}
