package supervisor_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// A task that ends while an upgrade passes it on is followed by the next before the slot is
// told to go on: it looks for work already, and does so once. With two that look, the one
// is refused the lease that the other holds, and the process of that one is known to nobody:
// its message is CLAIMED for ever, and the slot starts nothing more. Have goOn call seek and
// this fails.
func TestTakeOver_LooksForWorkOnce(t *testing.T) {
	dir := t.TempDir()
	mkfifo(t, filepath.Join(dir, "go"))
	w := run(t, shell("t", config.Task, "cat "+filepath.Join(dir, "go")))
	w.state("t", "idle")
	w.sup.GoOn()
	sent, err := w.box.SendBatch(t.Context(), []mailbox.Outgoing{{To: "t"}, {To: "t"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sent {
		w.state("t", "up")
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0); err != nil {
			t.Fatal(err)
		}
		if d := w.await(s.ID); d.State != mailbox.Done || len(d.Receipts) != 1 {
			t.Errorf("%s is %s with %d receipts", s.ID, d.State, len(d.Receipts))
		}
	}
	if text := w.log.String(); strings.Contains(text, "cannot happen") || strings.Contains(text, "state=backoff") {
		t.Errorf("the slot looked twice:\n%s", text)
	}
}
