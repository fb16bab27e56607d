package capture

import (
	"context"
	"errors"
	"io"
	"os"
)

// A Stream is one stream of a living process, of which another program is to go on
// reading under the same number of descriptor.
type Stream struct {
	FD      uintptr `json:"fd"`
	Name    string  `json:"name"`    // Stdout or Stderr
	Process string  `json:"process"` // shortened identity
}

// Pause stops reading, leaves what was written from then on in the pipes, and returns
// the streams that have not come to their end. What was read before is with the file, or
// lost and counted, when it returns: a line of which the end has not come yet as one
// that goes on. The error is ctx's, when that ends first.
func (l *Log) Pause(ctx context.Context) ([]Stream, error) {
	var out []Stream
	for p, s := range l.reading() {
		p.pause() // outside of mu, which a reader that ends wants
		if !p.ended() {
			out = append(out, Stream{FD: p.descriptor(), Name: s.name, Process: s.process})
		}
		s.split.flush(true)
	}
	if l.queue == nil {
		return out, nil
	}
	return out, l.queue.wait(ctx)
}

// Resume ends Pause.
func (l *Log) Resume() {
	for p := range l.reading() {
		p.resume()
	}
}

func (l *Log) reading() map[*pipe]stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[*pipe]stream, len(l.pipes))
	for p, s := range l.pipes {
		out[p] = s
	}
	return out
}

// Take goes on reading a stream that the program before this one has passed on. It is as
// Pipe otherwise.
func (l *Log) Take(s Stream, tee ...io.Writer) (done <-chan struct{}, err error) {
	return l.read(s.Name, s.Process, tee, func(sink func([]byte), end func()) (*pipe, error) {
		return readPipe(os.NewFile(s.FD, s.Name), sink, end), nil
	})
}

// Bytes is what has been kept, for another Tail to go on with.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.data...)
}

// A Collected is a Result in the middle of its collection.
type Collected struct {
	FD    uintptr `json:"fd"`    // of the pipe
	Ended bool    `json:"ended"` // the pipe has come to its end, and there is no FD
	Data  []byte  `json:"data"`
	Size  int64   `json:"size"`
	Path  string  `json:"path"` // of the file, "" = there is none
	Err   string  `json:"err"`  // of the file
}

// Pause stops collecting, and leaves what was written from then on in the pipe.
func (r *Result) Pause() Collected {
	r.pipe.pause()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Collected{Ended: r.pipe.ended(), Data: r.data, Size: r.size, Path: r.path}
	if !c.Ended {
		c.FD = r.pipe.descriptor()
	}
	if r.err != nil {
		c.Err = r.err.Error()
	}
	return c
}

// Resume ends Pause.
func (r *Result) Resume() { r.pipe.resume() }

// TakeResult goes on with a Result that the program before this one has passed on.
func TakeResult(limit int, spill string, bound Bound, c Collected) *Result {
	r := &Result{limit: limit, spill: spill, bound: bound, data: c.Data, size: c.Size, path: c.Path}
	if bound.Max > 0 && c.Size > bound.Max {
		r.exceed()
	} else if c.Err != "" {
		r.err = errors.New(c.Err)
	} else if c.Path != "" && !c.Ended {
		r.file, r.err = os.OpenFile(c.Path, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if !c.Ended {
		r.pipe = readPipe(os.NewFile(c.FD, Stdout), r.take, r.end)
	}
	return r
}
