package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/worker"
)

// awaiting is a worker that waits for the end of what it sent.
func awaiting(t *testing.T) (h *house, p *peer, say func(method string), id mailbox.ID) {
	t.Helper()
	h = newHouse(t)
	p, c := h.channel(h.birth("resize", 1, config.Worker))
	sent := into[protocol.SendResult](t, p.ask("send", `{"to":"other","body":"b"}`))
	id, err := mailbox.ParseID(sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	p.write(`{"jsonrpc":"2.0","id":7,"method":"await","params":{"id":"` + sent.ID + `"}}`)
	return h, p, func(method string) { c.Notify(method, nil) }, id
}

// A worker that is to stop finishes what is at hand, and so gets what it waits for: the
// answer of a request-and-reply, say. Let drain end every wait and this fails.
func TestAwait_GoesOnWhileItsWorkerDrains(t *testing.T) {
	h, p, say, id := awaiting(t)
	say("drain")
	if l := p.read(); l.Method != "drain" {
		t.Fatalf("%+v", l)
	}
	if _, err := h.box.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := into[protocol.Awaited](t, p.read()); got.State != "DEAD" {
		t.Errorf("%+v", got)
	}
	// Claims wait no more.
	if got := into[protocol.ClaimResult](t, p.ask("claim", `{"wait":"1h"}`)); len(got.Messages) != 0 {
		t.Errorf("%+v", got)
	}
}

// A Call within a handler comes back while its worker drains.
func TestSDK_CallGoesOnWhileItsWorkerDrains(t *testing.T) {
	h := newHouse(t)
	caller, say := h.sdk(h.birth("resize", 1, config.Worker))
	answers, _ := h.sdk(h.birth("other", 1, config.Worker))
	h.send("resize", "go")
	asked, drained := make(chan struct{}), make(chan struct{})
	go func() {
		_ = answers.Run(t.Context(), func(_ context.Context, m *worker.Message) error {
			close(asked)
			<-drained
			m.Result = []byte("answer")
			return nil
		})
	}()
	got := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- caller.Run(t.Context(), func(ctx context.Context, m *worker.Message) error {
			answer, err := m.Call(ctx, protocol.Outgoing{To: "other"})
			got <- string(answer)
			return err
		})
	}()
	<-asked
	say("drain", nil)
	close(drained)
	if answer := <-got; answer != "answer" {
		t.Errorf("%q", answer)
	}
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A wait that is passed on, as an upgrade does, is asked again on the other side, and
// gets its answer there. Answer it unavailable and this fails.
func TestAwait_IsAskedAgainAfterItWasPassedOn(t *testing.T) {
	h, p, _, id := awaiting(t)
	want(t, p.ask("ping", `{}`), "") // read behind it
	if _, err := h.server.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.server.Resume()
	if _, err := h.box.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	l := p.read()
	if got := into[protocol.Awaited](t, l); got.State != "DEAD" || string(l.ID) != "7" {
		t.Errorf("%s: %+v", l.ID, got)
	}
}

// crowd is a context that counts those that were made of it and are not over.
type crowd struct {
	context.Context
	now *atomic.Int32
}

// AfterFunc is what package context registers a context by that is made of another one.
func (c crowd) AfterFunc(f func()) (stop func() bool) {
	c.now.Add(1)
	stop = context.AfterFunc(c.Context, f)
	return func() bool { c.now.Add(-1); return stop() }
}

// The context of a connection keeps nothing of a wait that is over: a worker may ask and
// wait on one connection for as long as it lives. Make the context with a timeout beside
// the one without, and this fails.
func TestAwait_LeavesNothingWithItsConnection(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	of := crowd{t.Context(), new(atomic.Int32)}
	for _, params := range []string{`{"id":"` + id + `","timeout":"1ms"}`, `{"id":"m999"}`} {
		_, _ = h.control.Handle(of, protocol.MethodAwait, []byte(params))
		if n := of.now.Load(); n != 0 {
			t.Errorf("%s: %d contexts are left", params, n)
		}
	}
}
