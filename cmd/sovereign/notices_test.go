package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A written keeps what one goroutine writes while others look.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer // mu guards
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// A gate is a reader that takes nothing while it is shut.
type gate struct {
	shut chan struct{} // holds one while it is
	written
}

func (g *gate) Write(b []byte) (int, error) {
	g.shut <- struct{}{}
	defer func() { <-g.shut }()
	return g.written.Write(b)
}

func lostLines(n int64) []byte { return fmt.Appendf(nil, "%d lost\n", n) }

// What a supervisor says is written when Write returns, as long as somebody reads. Let
// Write return before, and this fails.
func TestNotices_AreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{shut: make(chan struct{}, 1)}
		n := newNotices(&g, lostLines)
		for i := range 100 {
			fmt.Fprintf(n, "line %d\n", i)
			if want := fmt.Sprintf("line %d\n", i); !strings.HasSuffix(g.String(), want) {
				t.Fatalf("after %q was said: %q", want, g.String())
			}
		}
	})
}

// Whoever has stopped reading keeps nobody: the first line waits a moment, the others do
// not, what there is no room for is counted, and told once somebody reads. Write to w at
// once, or wait for each line, and this fails.
func TestNotices_KeepNobodyWhereNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate{shut: make(chan struct{}, 1)}
		n := newNotices(&g, lostLines)
		g.shut <- struct{}{}
		began := time.Now()
		line := strings.Repeat("x", 1023) + "\n"
		const lines = 1000
		for range lines {
			if k, err := n.Write([]byte(line)); k != len(line) || err != nil {
				t.Fatal(k, err)
			}
		}
		if took := time.Since(began); took != noticePatience {
			t.Errorf("%d lines that nobody reads kept us for %v, want %v", lines, took, noticePatience)
		}
		closeSoon(n.close) // returns although nobody reads
		<-g.shut
		closeSoon(n.close)
		kept := 1 + maxNoticed/len(line) // the one that is being written, and those that wait
		if want := strings.Repeat(line, kept) + fmt.Sprintf("%d lost\n", lines-kept); g.String() != want {
			t.Errorf("once somebody reads: %d bytes that end in %q, want %d that end in %q", len(g.String()), tail(g.String()), len(want), tail(want))
		}
		fmt.Fprint(n, "again\n")
		if !strings.HasSuffix(g.String(), "again\n") {
			t.Error("what is said after that is not written at once")
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-40):] }
