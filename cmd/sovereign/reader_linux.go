package main

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// endWithReader has this process end once nobody can read any more what it writes to its
// standard output, where that is a pipe or a socket: a command that waits for what may
// never happen would notice with its next line only. It ends as that line would end it, by
// SIGPIPE and without a word. It lasts until stop, which waits for what it has begun.
func endWithReader(out io.Writer) (stop func()) {
	f, ok := out.(*os.File)
	if !ok || int(f.Fd()) != unix.Stdout {
		return func() {} // nobody is told by a signal that another file has lost its reader
	}
	about, err := f.Stat()
	if err != nil || about.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return func() {}
	}
	stopping, stopped, err := os.Pipe()
	if err != nil {
		return func() {} // it is noticed with the next line
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if goneReader(unix.Stdout, int(stopping.Fd())) {
			writeToNobody(f)
			os.Exit(exitFailed) // no descriptor was left
		}
	}()
	return func() {
		_ = stopped.Close()
		<-done
		_ = stopping.Close()
	}
}

// goneReader waits until nobody is left at the other end of the pipe or socket fd, or of
// until, which comes first, and reports whether it was that of fd.
func goneReader(fd, until int) bool {
	// No event is asked for: that an end is gone is told all the same.
	fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(until)}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return false
		}
		switch {
		case fds[1].Revents != 0:
			return false
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		case fds[0].Revents != 0: // it is no descriptor any more
			return false
		}
	}
}

// writeToNobody writes to f, the standard output, which has no reader: Go's runtime then ends
// the process. It is written to another pipe put in its place: a new reader of a named one
// would get what is written.
func writeToNobody(f *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	_ = r.Close()
	if err := unix.Dup3(int(w.Fd()), unix.Stdout, unix.O_CLOEXEC); err != nil {
		return
	}
	_, _ = f.Write([]byte{'\n'})
}
