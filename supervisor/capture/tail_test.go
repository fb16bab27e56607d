package capture

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTail_SinceLeavesOutWhatWasBefore: of what was written the part from a moment on, to
// the byte, as far as it is kept. Forget sizes when old bytes are dropped and this fails.
func TestTail_SinceLeavesOutWhatWasBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		tail := Tail{Lines: 1 << 20}
		var all []byte
		var at []int // the second in which each byte was written
		writes := rapid.IntRange(1, tailWrites).Draw(t, "writes")
		for second := range writes {
			size := rapid.SampledFrom([]int{0, 1, 7, 1000, tailBytes, tailBytes + 1, 3 * tailBytes}).Draw(t, "size")
			p := bytes.Repeat([]byte{byte('a' + second%26)}, size)
			tail.add(p, begin.Add(time.Duration(second)*time.Second))
			all = append(all, p...)
			for range p {
				at = append(at, second)
			}
		}
		since := rapid.IntRange(0, writes).Draw(t, "since")
		first := 0
		for first < len(at) && at[first] < since {
			first++
		}
		first = max(first, len(all)-tailBytes)
		if got := tail.Since(begin.Add(time.Duration(since) * time.Second)); got != string(all[first:]) {
			t.Errorf("got %d bytes, want %d", len(got), len(all)-first)
		}
	})
}

// TestTail_ManyWrites: however many writes there were, their times take no more room than
// 64 of them, and the newest are told apart. Merge the newest two and this fails.
func TestTail_ManyWrites(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tail Tail
	for range 10 * tailWrites {
		tail.add([]byte("old\n"), now)
	}
	now = now.Add(time.Second)
	tail.add([]byte("new\n"), now)
	if got := tail.Since(now); got != "new" {
		t.Errorf("got %q", got)
	}
	if got, want := tail.String(), strings.Repeat("old\n", tailLines-1)+"new"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(tail.writes) > tailWrites {
		t.Errorf("it keeps the times of %d writes", len(tail.writes))
	}
}
