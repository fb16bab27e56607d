package server_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/config"
)

// After a pause that was refused a link whose request was still under way is served
// again, and known: the next pause waits for it, and it can be passed on. Have the
// goroutine that served it look whether it is parked, once it is served again, and this
// fails.
func TestResume_KeepsWhatWasStillUnderWay(t *testing.T) {
	h := newHouse(t)
	p, c := h.channel(h.birth("resize", 1, config.Worker))
	people := h.people()
	free := sync.OnceFunc(h.hang())
	t.Cleanup(free)
	for _, peer := range []*peer{p, people} {
		peer.write(`{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"other","body":"x"}}`)
		peer.write(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if l := peer.read(); string(l.ID) != "2" { // people have no ping, and are told so at once
			t.Fatalf("the answer to %s came first", l.ID)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.server.Pause(over); err == nil {
		t.Fatal("it was paused with requests under way")
	}
	h.server.ResumeFirst(free)
	want(t, p.read(), "")
	want(t, people.read(), "")
	for range 10 { // the goroutines that served them come to their end meanwhile
		want(t, p.ask("ping", "{}"), "")
		people.ask("ping", "{}")
	}

	for range 2 {
		off, err := h.server.Pause(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(off.Connections) != 1 {
			t.Errorf("%d connections can be passed on, want 1", len(off.Connections))
		}
		if _, _, ok := c.Held(); !ok {
			t.Error("a channel that lives cannot be passed on")
		}
		h.server.Resume()
		want(t, p.ask("ping", "{}"), "")
		people.ask("ping", "{}")
	}
}
