package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// Who follows is told at once what arrives and what changes, each message once, of one
// actor where one was named, and nothing where nothing happens. It waits for that without
// looking again. Leave out Box.Arrivals and this fails.
func TestFollow_TellsArrivalsAndChanges(t *testing.T) {
	h := newHouse(t)
	h.send("resize", "before")
	p := h.people()
	begin := into[protocol.InboxFollowed](t, p.ask("inbox.follow", `{}`))
	if len(begin.IDs) > 0 || begin.Missed || begin.Arrivals == 0 {
		t.Fatalf("%+v", begin)
	}
	ask := func(at protocol.InboxFollowed, actor string, wait time.Duration) protocol.InboxFollowed {
		t.Helper()
		return into[protocol.InboxFollowed](t, p.ask("inbox.follow", protocol.InboxFollowParams{Actor: actor, Arrivals: at.Arrivals,
			Events: at.Events, Wait: protocol.Duration(wait)}))
	}
	if got := ask(begin, "", 0); len(got.IDs) > 0 || got.Missed {
		t.Errorf("%+v", got)
	}
	answered := make(chan protocol.InboxFollowed, 1)
	go func() { answered <- ask(begin, "other", time.Hour) }()
	h.send("resize", "a")
	other := h.send("other", "b")
	if got := <-answered; !slices.Equal(got.IDs, []string{other}) {
		t.Errorf("%+v", got)
	}
	got := ask(begin, "", 0)
	if len(got.IDs) != 2 || got.IDs[1] != other {
		t.Errorf("%+v", got)
	}
	id, err := mailbox.ParseID(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.box.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := h.box.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got = ask(got, "", time.Hour); !slices.Equal(got.IDs, []string{other}) {
		t.Errorf("%+v", got)
	}
	// The places of an earlier supervisor.
	if got := ask(protocol.InboxFollowed{Arrivals: 7, Events: got.Events}, "", time.Hour); !got.Missed || got.Arrivals == 7 {
		t.Errorf("%+v", got)
	}
	// Also where its numbers are possible here, since the wall clock was set back. Leave
	// out Box and this fails.
	if again := into[protocol.InboxFollowed](t, p.ask("inbox.follow", protocol.InboxFollowParams{Arrivals: got.Arrivals, Box: "another",
		Events: got.Events})); !again.Missed || again.Box != begin.Box || begin.Box == "" || again.Arrivals != got.Arrivals {
		t.Errorf("%+v", again)
	}
	// An upgrade asks again on the other side.
	go func() { answered <- ask(got, "", time.Hour) }()
	if _, err := h.server.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.server.Resume()
	last := h.send("resize", "c")
	if got := <-answered; !slices.Equal(got.IDs, []string{last}) {
		t.Errorf("%+v", got)
	}
}
