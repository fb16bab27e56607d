package mailbox

import "testing"

// BenchmarkHeap pushes a hundred thousand ids and takes them out again.
func BenchmarkHeap(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		h := heap[ID]{before: func(a, b ID) bool { return a < b }}
		for i := range 100_000 {
			h.push(ID(i * 7919 % 100_003))
		}
		for range 100_000 {
			h.pop()
		}
	}
}
