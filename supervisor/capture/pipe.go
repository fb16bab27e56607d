package capture

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/descriptor"
)

// readSize is how much is taken from a pipe at once: what a pipe holds by
// default.
const readSize = 64 << 10

// yieldSize is how much a read has to bring for the reader to let others go on and look
// again, before it waits in the poller: a child that writes much has then written more,
// and one write to the disk takes it all.
const yieldSize = 2 << 10

// buffers lends a buffer to a pipe only while there is something to read. It is
// a variable of the package: a pool is worth it only when all share it.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// A pipe carries one stream of a child to sink. Its reader waits in Go's poller,
// without thread or buffer.
type pipe struct {
	r    *os.File
	sink func([]byte) // gets what was read; must not keep it
	end  func()       // called once, after the last sink
	done chan struct{}
	quit atomic.Bool // drain was called

	parked atomic.Pointer[chan struct{}] // pause was called; closed once nothing is read any more
}

// newPipe makes a pipe; its reader runs until every writer has closed it, or
// until drain.
func newPipe(sink func([]byte), end func()) (childEnd *os.File, p *pipe, err error) {
	r, w, err := openPipe()
	if err != nil {
		return nil, nil, err
	}
	return w, readPipe(r, sink, end), nil
}

// readPipe reads r, which does not block, as newPipe does.
func readPipe(r *os.File, sink func([]byte), end func()) *pipe {
	p := &pipe{r: r, sink: sink, end: end, done: make(chan struct{})}
	go p.run() // ends with the pipe; done says so
	return p
}

func (p *pipe) run() {
	conn, err := p.r.SyscallConn()
	if err == nil {
		err = conn.Read(func(fd uintptr) bool { return p.take(int(fd), -1) })
	}
	timeout := errors.Is(err, os.ErrDeadlineExceeded)
	if parked := p.parked.Load(); parked != nil && timeout && !p.quit.Load() {
		close(*parked)
		return
	}
	defer close(p.done)
	defer p.end()
	defer p.r.Close()
	if timeout {
		// drain: what was written before the child's exit is in the pipe now, and
		// cannot be more than fits into it. What a grandchild goes on writing is not
		// waited for.
		conn.Control(func(fd uintptr) { p.take(int(fd), capacity(int(fd))) })
	}
}

// take reads until the pipe is empty, and returns false, or at its end, and
// returns true; at most about left bytes, -1 = all.
func (p *pipe) take(fd, left int) (ended bool) {
	much := false // was read last, and nobody else had a turn since
	for left != 0 {
		if left < 0 && (p.quit.Load() || p.parked.Load() != nil) {
			return false // the poller reports the deadline
		}
		buf := buffers.Get().(*[readSize]byte)
		n, err := syscall.Read(fd, buf[:])
		if n > 0 {
			p.sink(buf[:n])
		}
		buffers.Put(buf)
		switch {
		case n > 0:
			much = n >= yieldSize
			if left > 0 {
				left = max(0, left-n)
			}
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN) && much:
			much = false
			runtime.Gosched()
		case errors.Is(err, syscall.EAGAIN):
			return false
		default:
			return true
		}
	}
	return true
}

// drain makes the reader take what is in the pipe already and end. It does not
// wait for that; done does.
func (p *pipe) drain() {
	p.quit.Store(true)
	p.r.SetReadDeadline(time.Unix(1, 0)) // fails only when the reader has ended
}

// pause makes the reader stop, and leave what is in the pipe there. It returns once that
// has happened, or the pipe has come to its end.
func (p *pipe) pause() {
	parked := make(chan struct{})
	p.parked.Store(&parked)
	p.r.SetReadDeadline(time.Unix(1, 0))
	select {
	case <-parked:
	case <-p.done:
	}
}

// resume ends pause.
func (p *pipe) resume() {
	select {
	case <-p.done:
		return
	default:
	}
	p.parked.Store(nil)
	p.r.SetReadDeadline(time.Time{})
	go p.run()
}

// ended reports whether nothing will be read any more.
func (p *pipe) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// descriptor is the number of the end that is read.
func (p *pipe) descriptor() uintptr { return descriptor.Of(p.r) }

// wait waits for the reader's end, or ctx's, whose error it then returns.
func (p *pipe) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
