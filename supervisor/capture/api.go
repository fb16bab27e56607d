package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// MaxBlock is the longest time for which a child's write waits for the disk.
const MaxBlock = 250 * time.Millisecond

// The streams of a child.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Options say how much of a slot's output is kept.
type Options struct {
	File    bool  // false: nothing is written to disk
	MaxSize int64 // bytes of one file before it is rotated; 0 = 10 MiB
	Keep    int   // rotated files besides the current one; 0 = none
}

// A Line is one line of a child's output, or a part of a long one.
type Line struct {
	Actor   string
	Slot    int
	Time    time.Time // zero = not known
	Stream  string    // Stdout or Stderr; "" = not known
	Process string    // shortened identity; "" = not known
	Text    []byte    // without the newline; valid only during the call that gets it
	Partial bool      // the line goes on in the next Line of this stream
}

// A Console shows lines as they come. Line must return at once: it is called by
// the goroutines that keep the children's pipes empty.
type Console interface{ Line(Line) }

// Open prepares the log of one slot of an actor in dir, which it makes with mode
// 0700. No file is made before there is output. A nil console shows nothing. A
// folder that cannot be made is no error: output is then counted as lost until
// it can.
func Open(dir, actor string, slot int, o Options, console Console) (*Log, error) {
	return nil, errors.ErrUnsupported
}

// A Log keeps the output of one slot's processes, one after the other.
type Log struct{}

// Pipe makes a pipe for one stream of the process proc (its shortened identity)
// and starts to read it. childEnd goes to Spec.Stdout or Stderr and is closed by
// the caller after Start. done is closed once the pipe is at its end, or drained,
// and what it held is with the Log. tee also gets every byte, and must not block
// or keep the slice.
func (l *Log) Pipe(stream, proc string, tee ...io.Writer) (childEnd *os.File, done <-chan struct{}, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Drain is called once a process has exited and its tree is killed: it takes
// what is in the pipes already, without waiting for their end, which a
// grandchild may hold open for ever; closes them; and waits until the file has
// all of it, or ctx ends. A last line without newline is kept.
func (l *Log) Drain(ctx context.Context) error { return errors.ErrUnsupported }

// Reopen closes the file, so that the next output makes a new one: for an
// external logrotate that has moved it.
func (l *Log) Reopen() {}

// Lost is how many bytes of output were not kept, since Open.
func (l *Log) Lost() int64 { return 0 }

// Close drains and closes the file.
func (l *Log) Close(ctx context.Context) error { return nil }

// A Tail keeps the last lines written to it, at most 4 KiB. It is an io.Writer,
// to be given to Pipe as tee. Its zero value keeps 10 lines.
type Tail struct{ Lines int }

func (t *Tail) Write(p []byte) (int, error) { return len(p), nil }

// String is the last lines, without the final newline.
func (t *Tail) String() string { return "" }

// A Result collects the stdout of a task: up to limit bytes in memory, all of it
// in the file spill, mode 0600, as soon as there is more. The file is made only
// then.
type Result struct{}

// NewResult makes one. limit is in bytes.
func NewResult(limit int, spill string) *Result { return &Result{} }

// Pipe makes the pipe, as Log.Pipe does. A Result has one.
func (r *Result) Pipe() (childEnd *os.File, done <-chan struct{}, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Drain is as Log.Drain. After it nothing is added.
func (r *Result) Drain(ctx context.Context) error { return errors.ErrUnsupported }

// Bytes is what was written: all of it, with path "", or its first limit bytes
// and the path of the file that holds all. err says why the file is incomplete
// (a full disk); size counts every byte that the child wrote. Call it after
// Drain.
func (r *Result) Bytes() (data []byte, path string, size int64, err error) { return nil, "", 0, nil }

// A Query says which lines to read.
type Query struct {
	Actor string
	Slot  int // 0 = all
	Lines int // how many of the last lines; -1 = all that is kept
}

// Last calls emit with the last lines of the query, oldest first, over rotated
// files as well. It ends at the first error of emit and returns it. An actor
// without logs has none.
func Last(dir string, q Query, emit func(Line) error) error { return errors.ErrUnsupported }

// Follow is Last, and then every line as it is written, across rotation, until
// ctx ends, which is no error.
func Follow(ctx context.Context, dir string, q Query, emit func(Line) error) error {
	return errors.ErrUnsupported
}

// NewConsole makes a Console that writes "actor.slot | line" to w, with color
// around the prefix where it is not nil: it returns what to write before and
// after. Lines that w does not take in time are dropped, counted, and reported
// once it takes them again.
func NewConsole(w io.Writer, color func(actor string) (before, after string)) *Printer { return nil }

// A Printer is the Console of a terminal.
type Printer struct{}

// Line queues l. It never blocks.
func (p *Printer) Line(l Line) {}

// Lost is how many lines were dropped, since NewConsole.
func (p *Printer) Lost() int64 { return 0 }

// Close writes what is queued, until ctx ends.
func (p *Printer) Close(ctx context.Context) error { return nil }
