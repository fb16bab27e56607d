package supervisor

import (
	"testing"

	"github.com/sovereign-run/sovereign/config"
)

// H2: a reload makes room for what finishes beside what it starts: slots that it takes away
// hold their descriptors until they have ended. Count those of the new file only, and this
// fails.
func TestFilesFor_CountsTheSlotsThatLeave(t *testing.T) {
	actors := []config.Actor{{Name: "new", Mode: config.Daemon, Replicas: 3}}
	leaving := []*config.Actor{{Mode: config.Worker}, {Mode: config.Worker, Ready: &config.Ready{Notify: true}}}
	slots, need := filesFor(actors, leaving)
	if slots != 5 || need != filesOwn+3*2+3+4 {
		t.Errorf("%d slots need %d descriptors", slots, need)
	}

	sup := &Supervisor{}
	old := &config.Actor{Name: "old", Mode: config.Worker}
	fleet := []*actor{{def: &definition{spec: old}, slots: []*slot{{}, {}, {}}}}
	for i, at := range []state{up, up, stopped} {
		s := fleet[0].slots[i]
		s.name.Actor, s.name.Number = "old", i+1
		s.def.Store(fleet[0].def)
		s.seen.Store(&view{at: at})
	}
	sup.fleet.Store(&fleet)
	for _, c := range []struct{ replicas, want int }{{0, 2}, {1, 1}, {2, 0}} {
		if got := len(sup.leavingFor([]config.Actor{{Name: "old", Replicas: c.replicas}})); got != c.want {
			t.Errorf("with %d of 3 slots kept, the last without a process, %d leave; want %d", c.replicas, got, c.want)
		}
	}
}
