package server_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
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

// large is a database that takes until ctx ends to be checked, the first time.
type large struct {
	server.Storage
	looks chan struct{} // gets one at each look
	once  *sync.Once
}

func (l large) Check(ctx context.Context, _ func(error) bool) (err error) {
	l.looks <- struct{}{}
	l.once.Do(func() { <-ctx.Done(); err = context.Cause(ctx) })
	return err
}

// A verify that is under way when its connection is passed on begins anew where that goes,
// and whoever asked gets its answer there. Have verify return the error, and this fails.
func TestPause_VerifyBeginsAnew(t *testing.T) {
	h := newHouse(t)
	db := large{looks: make(chan struct{}, 2), once: new(sync.Once)}
	h.control.WithStorage(db)
	people := h.people()
	people.write(`{"jsonrpc":"2.0","id":1,"method":"verify","params":{}}`)
	<-db.looks
	off, err := h.server.Pause(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(off.Connections) != 1 || len(off.Connections[0].Again) != 1 {
		t.Errorf("passed on: %+v", off.Connections)
	}
	h.server.Resume()
	into[protocol.Verified](t, want(t, people.read(), ""))
	<-db.looks
}
