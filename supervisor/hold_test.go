package supervisor_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
)

// A slot that is held looks for no work: there is nothing to call off when it is stopped,
// and it is stopped at once. Have recall count on a search and the supervisor dies of this.
func TestHold_StopOfWhatIsIdle(t *testing.T) {
	w := run(t, shell("a", config.Task, "true"), shell("b", config.Task, "true"))
	w.state("a", "idle")
	w.state("b", "idle")
	if err := w.sup.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.sup.Stop(t.Context(), "a"); err != nil {
		t.Errorf("stop: %v", err)
	}
	w.state("a", "stopped")
	if err := w.sup.Start(t.Context(), "a"); err != nil { // it is idle, and still looks for nothing
		t.Errorf("start: %v", err)
	}
	w.sup.Release()
	if d := w.await(w.send("a", "x")); d.State != mailbox.Done {
		t.Errorf("%s", d.State)
	}
	w.state("a", "idle")
	if err := w.sup.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.stop(); err != nil {
		t.Errorf("stop of the supervisor: %v", err)
	}
}
