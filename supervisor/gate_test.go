package supervisor

import (
	"testing"

	"pgregory.net/rapid"
)

// The gate is open for an actor exactly while all of its slots are ready, and whoever
// waits is woken when it opens.
func TestGate_AllSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g gate
		slots := rapid.IntRange(0, 4).Draw(t, "slots")
		g.set("a", slots)
		g.set("b", 0)
		ready := make([]bool, slots)
		count := 0
		var opens <-chan struct{}
		for range rapid.IntRange(0, 20).Draw(t, "turns") {
			if slots > 0 {
				n := rapid.IntRange(0, slots-1).Draw(t, "slot")
				ready[n] = !ready[n]
				if ready[n] {
					count++
				} else {
					count--
				}
				g.turn("a", ready[n])
			}
			if count == slots && opens != nil {
				select {
				case <-opens:
				default:
					t.Fatal("the gate opened and nobody was woken")
				}
			}
			name, ch := g.closed([]string{"b", "a", "unknown"})
			if (name == "") != (count == slots) || (name == "") != (ch == nil) {
				t.Fatalf("%d of %d slots are ready, and %q is waited for", count, slots, name)
			}
			opens = ch
		}
	})
}
