package mailbox_test

import (
	"slices"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
)

// The journal tells of a pause and of its end whoever asks for it, a supervisor or
// a command on a stopped store, and of nothing where nothing changes. Take the
// event out of SetPaused and this fails.
func TestSetPaused_TellsTheJournal(t *testing.T) {
	h := mailboxtest.Open(t, mailbox.Actor{Name: "work", Mailbox: true})
	for _, paused := range []bool{true, true, false, false} {
		if err := h.Box.SetPaused(t.Context(), "work", paused); err != nil {
			t.Fatal(err)
		}
	}
	evs, _, err := h.Box.Events(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []protocol.EventKind
	for _, ev := range evs {
		if ev.Actor == "work" {
			got = append(got, ev.Kind)
		}
	}
	if !slices.Equal(got, []protocol.EventKind{protocol.EventPaused, protocol.EventResumed}) {
		t.Errorf("the journal tells %q", got)
	}
}
