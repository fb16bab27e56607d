package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// A Result collects the stdout of a task: up to limit bytes in memory, all of it
// in the file spill, mode 0600, as soon as there is more. The file is made only
// then. A slow disk slows the task; one that fails makes the file incomplete,
// which Bytes tells, and the task goes on. More than its bound is no result: the file is
// removed, and nothing more is kept.
type Result struct {
	limit int
	spill string
	bound Bound

	pipe *pipe // set by Pipe

	mu   sync.Mutex
	data []byte   // mu guards; the first limit bytes
	size int64    // mu guards; all bytes
	file *os.File // mu guards; nil = nothing spilled, or the reader has ended
	path string   // mu guards; spill once there is such a file
	err  error    // mu guards; of the file; nothing is written after it
	over bool     // mu guards; the bound is exceeded
}

// A Bound is how much a Result may be. The zero value is no bound.
type Bound struct {
	Max  int64  // bytes; 0 = no bound
	Over func() // called once, on a goroutine of its own, when there is more
}

// NewResult makes one. limit is in bytes.
func NewResult(limit int, spill string, bound Bound) *Result {
	return &Result{limit: limit, spill: spill, bound: bound}
}

// Pipe makes the pipe, as Log.Pipe does. A Result has one.
func (r *Result) Pipe() (childEnd *os.File, done <-chan struct{}, err error) {
	if r.pipe != nil {
		return nil, nil, errors.New("a result has one pipe")
	}
	childEnd, r.pipe, err = newPipe(r.take, r.end)
	if err != nil {
		return nil, nil, err
	}
	return childEnd, r.pipe.done, nil
}

func (r *Result) take(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.size
	r.size += int64(len(b))
	if room := r.limit - len(r.data); room > 0 {
		r.data = append(r.data, b[:min(room, len(b))]...)
	}
	if r.bound.Max > 0 && r.size > r.bound.Max {
		r.exceed()
		return
	}
	if r.size <= int64(r.limit) || r.err != nil {
		return
	}
	if r.file == nil {
		if r.err = r.open(); r.err != nil {
			return
		}
		if _, r.err = r.file.Write(r.data[:before]); r.err != nil {
			return
		}
	}
	_, r.err = r.file.Write(b)
}

// exceed takes note that there is more than may be, and gives the room on the disk back.
func (r *Result) exceed() {
	if r.over {
		return
	}
	r.over = true
	if r.file != nil {
		_ = r.file.Close() // nobody is to read it
		r.file = nil
	}
	if r.path != "" && os.Remove(r.path) == nil {
		r.path = ""
	}
	if r.bound.Over != nil {
		go r.bound.Over()
	}
}

// Over reports whether more was written than may be. Call it after Drain.
func (r *Result) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// open makes the file. before, the size until now, is at most limit, so all of
// it is still in memory.
func (r *Result) open() error {
	if err := os.MkdirAll(filepath.Dir(r.spill), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(r.spill, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	r.file, r.path = f, r.spill
	return nil
}

// end makes the file durable: the completion that names it will be.
func (r *Result) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	r.err = errors.Join(r.err, r.file.Sync(), r.file.Close())
	r.file = nil
}

// Drain is as Log.Drain. After it nothing is added, and the file is synced.
func (r *Result) Drain(ctx context.Context) error {
	if r.pipe == nil {
		return nil
	}
	r.pipe.drain()
	return r.pipe.wait(ctx)
}

// Bytes is what was written: all of it, with path "", or its first limit bytes
// and the path of the file that holds all. err says why the file is incomplete
// (a full disk); size counts every byte that the child wrote. Call it after
// Drain.
func (r *Result) Bytes() (data []byte, path string, size int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		err = fmt.Errorf("keep a result of %d bytes in %s: %w", r.size, r.spill, r.err)
	}
	return r.data, r.path, r.size, err
}
