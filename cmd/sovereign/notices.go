package main

import (
	"context"
	"io"
	"sync"
	"time"
)

// The bounds of notices.
const (
	noticePatience = time.Second // a line may take to be written; then nobody waits for any until all are
	maxNoticed     = 256 << 10   // bytes that wait for a reader
)

// notices are what a supervisor says of itself, its log above all. A line is written
// when Write returns, as a rule. Where whoever reads it has stopped, a terminal by
// Ctrl-S, a pager, a service manager, it keeps nobody: lines wait, and what there is no
// room for is lost, counted, and told of once somebody reads again.
type notices struct {
	w    io.Writer
	lost func(n int64) []byte // says so

	mu      sync.Mutex
	pending []byte        // mu guards
	missing int64         // mu guards; lines lost since it was told
	written chan struct{} // mu guards; closed when nothing is left to be written; nil = so it is
	stuck   bool          // mu guards; nobody waits for written
}

// newNotices writes to w; lost makes the line that tells how many were lost.
func newNotices(w io.Writer, lost func(n int64) []byte) *notices {
	return &notices{w: w, lost: lost}
}

// Write writes one line, or has it written later. It always succeeds.
func (n *notices) Write(line []byte) (int, error) {
	n.mu.Lock()
	if len(n.pending)+len(line) > maxNoticed {
		n.missing++
	} else {
		n.pending = append(n.pending, line...)
	}
	if n.written == nil {
		n.written = make(chan struct{})
		go n.write() // ends when all is written; close waits for it, as long as it does
	}
	written, stuck := n.written, n.stuck
	n.mu.Unlock()
	if stuck {
		return len(line), nil
	}
	late := time.NewTimer(noticePatience)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
		n.mu.Lock()
		n.stuck = n.written != nil
		n.mu.Unlock()
	}
	return len(line), nil
}

func (n *notices) write() {
	for {
		n.mu.Lock()
		b, missing := n.pending, n.missing
		n.pending, n.missing = nil, 0
		if len(b) == 0 && missing == 0 {
			close(n.written)
			n.written, n.stuck = nil, false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		if missing > 0 {
			b = append(b, n.lost(missing)...)
		}
		_, _ = n.w.Write(b) // a reader that is gone is nobody's concern
	}
}

// close waits until all is written, or ctx ends.
func (n *notices) close(ctx context.Context) {
	n.mu.Lock()
	written := n.written
	n.mu.Unlock()
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
}
