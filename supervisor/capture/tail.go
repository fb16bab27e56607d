package capture

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines = 10
	tailBytes = 4 << 10
)

// A Tail keeps the last lines written to it, at most 4 KiB. It is an io.Writer,
// to be given to Pipe as tee, and may be read at any time. Its zero value keeps
// 10 lines.
type Tail struct {
	Lines int // how many; set it before use

	mu   sync.Mutex
	data []byte // mu guards; at most 2*tailBytes
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > tailBytes {
		t.data = append(t.data[:0], p[len(p)-tailBytes:]...)
		return len(p), nil
	}
	if len(t.data)+len(p) > 2*tailBytes {
		t.data = append(t.data[:0], t.data[len(t.data)-tailBytes:]...)
	}
	t.data = append(t.data, p...)
	return len(p), nil
}

// String is the last lines, without the final newline. It may hold any bytes.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.data
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
