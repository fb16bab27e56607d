package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
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
		if _, _, ok := c.Handed(); !ok {
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

// A verify that is under way when the supervisor stops is refused, unavailable, as all that
// is asked then, and can be repeated. Have verify return the context's error, and this
// fails: it was an error without a reason.
func TestVerify_IsUnavailableOnceTheSupervisorStops(t *testing.T) {
	h := newHouse(t)
	db := large{looks: make(chan struct{}, 1), once: new(sync.Once)}
	h.control.WithStorage(db)
	people := h.people()
	people.write(`{"jsonrpc":"2.0","id":1,"method":"verify","params":{}}`)
	<-db.looks
	h.stop()
	if got := want(t, people.read(), "unavailable"); got.Error == nil || !got.Error.Data.Retryable {
		t.Errorf("%+v", got.Error)
	}
}

// stubborn are processes that end only once they are let go.
type stubborn struct {
	*operator
	asked, free chan struct{}
}

func (s stubborn) Cancel(ctx context.Context, h fence.Holder, ref mailbox.Ref) error {
	close(s.asked)
	select {
	case <-s.free:
		return s.operator.Cancel(ctx, h, ref)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// An upgrade waits for a cancel that is under way, or is refused: who cancels is told how
// the message has ended, and not that it still runs. Have inboxCancel wait by in.wait,
// and this fails.
func TestPause_WaitsForACancel(t *testing.T) {
	h := newHouse(t)
	s := stubborn{&operator{box: h.box}, make(chan struct{}), make(chan struct{})}
	h.control.Supervised(s)
	id := h.send("resize", "x")
	w, _ := h.channel(h.birth("resize", 1, config.Worker))
	w.claimOne()
	people := h.people()
	people.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"inbox.cancel","params":{"ids":[%q]}}`, id))
	<-s.asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.server.Pause(over); err == nil {
		t.Error("it was paused with a cancel under way")
	}
	close(s.free)
	if got := into[protocol.InboxChanged](t, want(t, people.read(), "")).Results; len(got) != 1 || got[0].State != protocol.MessageDead {
		t.Errorf("answered %+v, want DEAD", got)
	}
}

// What is accepted in the moment of a pause is passed on with the rest. Have the pause not
// wait for who accepts, and this fails: whoever asked by it was told that the supervisor
// had ended the connection.
func TestPause_PassesOnWhatIsJustAccepted(t *testing.T) {
	h := newHouse(t)
	for range 50 {
		var dialing sync.WaitGroup
		begun := make(chan struct{})
		peers := make([]*peer, 8)
		for i := range peers {
			dialing.Go(func() {
				if i == len(peers)/2 {
					close(begun)
				}
				peers[i] = h.shell()
			})
		}
		<-begun
		off, err := h.server.Pause(t.Context(), h.worker)
		if err != nil {
			t.Fatal(err)
		}
		dialing.Wait()
		if n := h.server.Links(); n != len(off.Connections) {
			t.Fatalf("%d connections are passed on, and there are %d", len(off.Connections), n)
		}
		h.server.Resume(h.worker)
		for _, p := range peers {
			p.ask("nothing", "{}")
		}
	}
}
