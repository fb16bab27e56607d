package capture

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

const (
	tailLines  = 10
	tailBytes  = 4 << 10
	tailWrites = 64
)

// A Tail keeps the last lines written to it, at most 4 KiB, and when they were. It is an
// io.Writer, to be given to Pipe as tee, and may be read at any time. Its zero value keeps
// 10 lines.
type Tail struct {
	Lines int // how many; set it before use

	mu     sync.Mutex
	data   []byte  // mu guards; at most 2*tailBytes
	writes []write // mu guards; of data, in order; at most tailWrites
}

// A write is so many bytes that were written at a time.
type write struct {
	size int
	at   time.Time
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.add(p, time.Now())
	return len(p), nil
}

func (t *Tail) add(p []byte, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > tailBytes {
		t.drop(len(t.data))
		p = p[len(p)-tailBytes:]
	} else if len(t.data)+len(p) > 2*tailBytes {
		t.drop(len(t.data) - tailBytes)
	}
	t.data = append(t.data, p...)
	if len(t.writes) == tailWrites { // the oldest two are from now on one of the later time
		t.writes[1].size += t.writes[0].size
		t.writes = append(t.writes[:0], t.writes[1:]...)
	}
	t.writes = append(t.writes, write{len(p), now})
}

// drop forgets the first n bytes. The caller holds mu.
func (t *Tail) drop(n int) {
	t.data = append(t.data[:0], t.data[n:]...)
	gone := 0
	for ; gone < len(t.writes) && t.writes[gone].size <= n; gone++ {
		n -= t.writes[gone].size
	}
	t.writes = append(t.writes[:0], t.writes[gone:]...)
	if n > 0 {
		t.writes[0].size -= n
	}
}

// String is the last lines, without the final newline. It may hold any bytes.
func (t *Tail) String() string { return t.Since(time.Time{}) }

// Since is String of what was written at that time or later.
func (t *Tail) Since(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.data
	for _, w := range t.writes {
		if !w.at.Before(at) {
			break
		}
		d = d[w.size:]
	}
	if len(d) > tailBytes {
		d = d[len(d)-tailBytes:]
	}
	d = bytes.TrimRight(d, "\n")
	n := t.Lines
	if n <= 0 {
		n = tailLines
	}
	start := len(d)
	for ; n > 0 && start >= 0; n-- {
		start = bytes.LastIndexByte(d[:start], '\n')
	}
	return strings.Clone(string(d[start+1:]))
}
