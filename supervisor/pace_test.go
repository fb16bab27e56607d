package supervisor

import (
	"testing"

	"pgregory.net/rapid"
)

// A limit holds also where it came while more were worked on: as they leave, their turns
// stay taken until no more than the limit are worked on. One that is raised gives turns at
// once. Give each turn back in leave, and this fails.
func TestPace_HoldsALimitThatCameLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, limit, busy := newPace(), maxPace, 0
		for _, n := range rapid.SliceOfN(rapid.IntRange(-maxPace, 2*maxPace), 1, 40).Draw(t, "limits, ends and starts") {
			switch {
			case n > maxPace:
				limit = n - maxPace
				p.limit(limit)
			case n > 0:
				for range min(n, limit-busy) {
					p.enter(t.Context())
					busy++
				}
			default:
				for range min(-n, busy) {
					p.leave()
					busy--
				}
			}
			if free := cap(p.turns) - len(p.turns); free != max(limit-busy, 0) {
				t.Fatalf("%d more get a turn, with %d of %d worked on", free, busy, limit)
			}
		}
	})
}
