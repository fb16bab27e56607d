package supervisor_test

import (
	"strconv"
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

// Whoever has seen one slot at work may operate on it, however many are still being told
// to start: the answer is not that the supervisor is starting. Let go of changing before
// all are told and this fails.
func TestHold_WhileOthersAreToldToStart(t *testing.T) {
	actors := []config.Actor{shell("a", config.Task, "true")}
	for i := range 300 {
		actors = append(actors, shell("after"+strconv.Itoa(i), config.Task, "true"))
	}
	w := run(t, actors...)
	w.state("a", "idle")
	if err := w.sup.Hold(t.Context()); err != nil {
		t.Error(err)
	}
	w.sup.Release()
}
