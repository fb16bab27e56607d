package capture

import (
	"iter"
	"time"
)

// The streams of a child.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// A Line is one line of a child's output, or a part of a long one.
type Line struct {
	Actor   string
	Slot    int
	Time    time.Time // when it was read from the pipe; zero = not known
	Stream  string    // Stdout or Stderr; "" = not known, or the supervisor's own note
	Process string    // shortened identity; "" = not known
	Text    []byte    // without the newline; valid only during the call that gets it
	Partial bool      // the line goes on in the next Line of this stream
}

// A Console shows lines as they come, those of one stream that came together at once.
// Lines must return at once: it is called by the goroutines that keep the children's
// pipes empty.
type Console interface{ Lines(iter.Seq[Line]) }
