package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say how much of a slot's output is kept.
type Options struct {
	File    bool  // false: nothing is written to disk
	MaxSize int64 // bytes of one file before it is rotated; 0 = 10 MiB
	Keep    int   // rotated files besides the current one; 0 = none

	Files *Files // shared by all logs; nil = there is no bound of open files
}

const defaultMaxSize = 10 << 20

// Open prepares the log of one slot of an actor in dir, which it makes with mode
// 0700. No file is made before there is output. A nil console shows nothing. A
// folder that cannot be made is no error: output is counted as lost until it can.
func Open(dir, actor string, slot int, o Options, console Console) (*Log, error) {
	if actor == "" || actor != filepath.Base(actor) || slot < 1 {
		return nil, errors.New("open log: no actor name and slot")
	}
	if o.MaxSize <= 0 {
		o.MaxSize = defaultMaxSize
	}
	l := &Log{actor: actor, slot: slot, console: console, patience: holdBack, pipes: map[*pipe]stream{}}
	if o.File {
		os.MkdirAll(dir, 0o700) // tried again before each new file
		l.queue = newQueue(&file{path: Path(dir, actor, slot), maxSize: o.MaxSize, keep: o.Keep, files: o.Files})
	}
	return l, nil
}

// Path is the file of a slot's output in dir.
func Path(dir, actor string, slot int) string {
	return filepath.Join(dir, actor+"."+strconv.Itoa(slot)+".log")
}

// A Log keeps the output of one slot's processes, one after the other.
type Log struct {
	actor    string
	slot     int
	console  Console
	queue    *queue        // nil = no file
	patience time.Duration // of splitters

	mu    sync.Mutex
	pipes map[*pipe]stream // mu guards; those that are read
}

// A stream is what comes through a pipe.
type stream struct {
	name, process string
	split         *splitter
}

// Pipe makes a pipe for one stream of the process proc (its shortened identity)
// and starts to read it. childEnd goes to Spec.Stdout or Stderr and is closed by
// the caller after Start; where Start fails, closing it ends the reader. done is
// closed once the pipe is at its end, or drained, and what it held is with the
// Log. tee also gets every byte, and must not block or keep the slice.
func (l *Log) Pipe(name, proc string, tee ...io.Writer) (childEnd *os.File, done <-chan struct{}, err error) {
	done, err = l.read(name, proc, tee, func(sink func([]byte), end func()) (p *pipe, err error) {
		childEnd, p, err = newPipe(sink, end)
		return p, err
	})
	return childEnd, done, err
}

// read reads the pipe that open makes.
func (l *Log) read(name, proc string, tee []io.Writer, open func(sink func([]byte), end func()) (*pipe, error)) (done <-chan struct{}, err error) {
	split := &splitter{patience: l.patience, out: func(run []byte, partial bool) {
		now := time.Now()
		l.show(Line{Actor: l.actor, Slot: l.slot, Time: now, Stream: name, Process: proc}, run, partial)
		if l.queue != nil {
			l.queue.add(run, segment{at: now.UnixNano(), stream: name, process: proc, partial: partial})
		}
	}}
	plain := l.console == nil && l.queue == nil
	sink := func(b []byte) {
		for _, w := range tee {
			w.Write(b)
		}
		if !plain {
			split.write(b)
		}
	}
	// Both locks are held for a moment only, and never by one another's holder.
	l.mu.Lock()
	defer l.mu.Unlock()
	var p *pipe
	p, err = open(sink, func() {
		split.flush(false)
		l.forget(&p)
	})
	if err != nil {
		return nil, err
	}
	l.pipes[p] = stream{name: name, process: proc, split: split}
	return p.done, nil
}

// forget is called by the reader, which may run before Pipe has stored p.
func (l *Log) forget(p **pipe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pipes, *p)
}

func (l *Log) show(line Line, run []byte, partial bool) {
	if l.console != nil {
		l.console.Lines(lines(line, run, partial))
	}
}

// Drain is called once a process has exited, and best after its tree was killed:
// it takes what is in the pipes already, without waiting for their end, which a
// grandchild may hold open for ever; closes them; and waits until the file has
// all of it, or ctx ends. A last line without newline is kept. The error is
// ctx's.
func (l *Log) Drain(ctx context.Context) error {
	l.mu.Lock()
	pipes := make([]*pipe, 0, len(l.pipes))
	for p := range l.pipes {
		p.drain()
		pipes = append(pipes, p)
	}
	l.mu.Unlock()
	for _, p := range pipes {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	if l.queue == nil {
		return nil
	}
	return l.queue.wait(ctx)
}

// Reopen closes the file, so that the next output makes a new one: for an
// external logrotate that has moved it. It does not wait for that; Drain does.
func (l *Log) Reopen() {
	if l.queue != nil {
		l.queue.reopen()
	}
}

// Kept is how many bytes of output are in the file, or were before it was rotated,
// since Open.
func (l *Log) Kept() int64 {
	if l.queue == nil {
		return 0
	}
	return l.queue.keptBytes()
}

// Limit changes how much of the output is kept, from the next line on: MaxSize and
// Keep of [Options].
func (l *Log) Limit(maxSize int64, keep int) {
	if maxSize <= 0 {
		maxSize = defaultMaxSize
	}
	if l.queue != nil {
		l.queue.limit(maxSize, keep)
	}
}

// Lost is how many bytes of output the file did not get, since Open.
func (l *Log) Lost() int64 {
	if l.queue == nil {
		return 0
	}
	return l.queue.lostBytes()
}

// Err is why the last write to the file failed; nil after one that did not.
func (l *Log) Err() error {
	if l.queue == nil {
		return nil
	}
	return l.queue.lastError()
}

// Close drains and closes the file. A Pipe after it is read, but not kept. Where ctx ends
// first, the file is closed once what is under way is written. The error is ctx's.
func (l *Log) Close(ctx context.Context) error {
	err := l.Drain(ctx)
	if l.queue != nil {
		l.queue.close()
	}
	return err
}
