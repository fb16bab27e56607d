package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// A console shows the lines of children as they come.
type console interface {
	capture.Console
	Close(ctx context.Context) error
}

func (o runOptions) console(w io.Writer) console {
	if o.logFormat == "json" {
		return newJSONConsole(w)
	}
	plain := capture.NewConsole(w, prefixColour(w))
	if isTerminal(w) {
		return escapingConsole{plain}
	}
	return plain
}

// An escapingConsole keeps the control characters of children from a terminal. The
// log has them as they were written.
type escapingConsole struct{ console }

func (c escapingConsole) Lines(lines iter.Seq[capture.Line]) {
	c.console.Lines(func(yield func(capture.Line) bool) {
		for l := range lines {
			if !yield(escaped(l)) {
				return
			}
		}
	})
}

// closeConsole gives what is queued a moment to be written: a terminal that is
// stuck does not keep the supervisor.
func closeConsole(c console) {
	closeSoon(func(ctx context.Context) { _ = c.Close(ctx) })
}

// closeSoon gives f a moment.
func closeSoon(f func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	f(ctx)
}

// A jsonConsole writes each line as one JSON object, from a queue: a reader that
// does not keep up loses lines, which is counted and told.
type jsonConsole struct {
	queue   chan logLine
	dropped atomic.Int64
	once    sync.Once
	closing chan struct{}
	done    chan struct{}
}

func newJSONConsole(w io.Writer) *jsonConsole {
	c := &jsonConsole{queue: make(chan logLine, 1024), closing: make(chan struct{}), done: make(chan struct{})}
	go c.write(w)
	return c
}

// Lines queues lines, or drops them.
func (c *jsonConsole) Lines(lines iter.Seq[capture.Line]) {
	for l := range lines {
		select {
		case c.queue <- jsonLine(l):
		default:
			c.dropped.Add(1)
		}
	}
}

func (c *jsonConsole) write(w io.Writer) {
	defer close(c.done)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for {
		select {
		case l := <-c.queue:
			_ = e.Encode(l)
		case <-c.closing:
			for len(c.queue) > 0 {
				_ = e.Encode(<-c.queue)
			}
			return
		}
		if n := c.dropped.Swap(0); n > 0 {
			_ = e.Encode(map[string]int64{"lines_dropped": n})
		}
	}
}

// Close writes what is queued, until ctx ends.
func (c *jsonConsole) Close(ctx context.Context) error {
	c.once.Do(func() { close(c.closing) })
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// greet says what begins, and how to look at it.
func (o runOptions) greet(w io.Writer, file *config.File) {
	if o.logFormat == "json" {
		return
	}
	where := ""
	if here, err := os.Getwd(); err != nil || filepath.Join(here, ".sovereign") != file.Data {
		where = " --data " + shellQuote(file.Data)
	}
	fmt.Fprintf(w, "sovereign: %s of %s, data in %s\n", plural(int64(len(file.Actors)), "actor"), file.Path, file.Data)
	fmt.Fprintf(w, "look: sovereign status%s    stop: Ctrl-C\n", where)
}
