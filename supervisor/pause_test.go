package supervisor_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

// A daemon gets no messages: to pause it is refused, rather than done to no effect. What was
// paused before it became one can be resumed. Leave the mode out of pause and this fails.
func TestPause_RefusesADaemon(t *testing.T) {
	w := run(t, shell("d", config.Daemon, "exec sleep 1000"))
	w.state("d", "up")
	if err := w.sup.Pause(t.Context(), "d"); !refusal.Has(err, refusal.WrongState) {
		t.Errorf("pause: %v", err)
	}
	if w.sup.Status()[0].Paused {
		t.Error("it is paused")
	}
	if err := w.sup.Resume(t.Context(), "d"); err != nil {
		t.Errorf("resume: %v", err)
	}
}
