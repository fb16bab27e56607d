package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/store"
)

// hang has every commit wait until the function that it returns is called, or the test
// has failed.
func (h *house) hang() (free func()) {
	h.t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- h.db.Update(h.t.Context(), func(store.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	let := sync.OnceFunc(func() { close(end) })
	h.t.Cleanup(let)
	return func() {
		h.t.Helper()
		let()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
}

// A request whose commit hangs holds up no other of its connection: what comes behind
// it is read and answered, its id is refused to others, and it gets its answer in the
// end; then the id is free. Let watch not pass the reading on and this fails.
func TestReading_GoesOnBesideACommitThatHangs(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	for n := range 3 {
		free := h.hang()
		p.write(`{"jsonrpc":"2.0","id":1,"method":"send","params":{"to":"other","body":"x"}}`)
		// It came alone, and is under way: what is read with another one is not inline.
		h.living.until(t, func() bool { return h.living.alive[holder.Process] == 2*n+1 })
		p.write(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if l := want(t, p.read(), ""); string(l.ID) != "2" {
			t.Fatalf("the answer to %s came first", l.ID)
		}
		p.write(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if l := want(t, p.read(), "bad_request"); string(l.ID) != "null" {
			t.Fatalf("the second of one id was answered under %s", l.ID)
		}
		free()
		if got := into[protocol.SendResult](t, p.read()); got.ID == "" {
			t.Fatal("sent nothing")
		}
	}
	want(t, p.ask("ping", `{}`), "")
}

// Requests that come together share a commit: those behind the first are not read only
// once it is answered. Answer them one after another and this hangs.
func TestReading_TakesTogetherWhatComesTogether(t *testing.T) {
	h := newHouse(t)
	p, _ := h.channel(h.birth("resize", 1, config.Worker))
	free := h.hang()
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"send","params":{"to":"other","body":"x"}}`+"\n", i)
	}
	p.write(lines.String() + `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	if l := want(t, p.read(), ""); string(l.ID) != `"last"` {
		t.Fatalf("the answer to %s came first", l.ID)
	}
	free()
	seen := map[string]bool{}
	for range 20 {
		seen[string(want(t, p.read(), "").ID)] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d of 20 were answered", len(seen))
	}
}

// Claims that wait, each in its turn, pass the reading back and forth, and what wakes
// them reaches them: none is lost however often they do.
func TestReading_IsPassedOnBeforeAWait(t *testing.T) {
	h := newHouse(t)
	holder := h.birth("resize", 1, config.Worker)
	p, _ := h.channel(holder)
	for i := range 200 {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"claim","params":{"wait":"1h"}}`, i))
		h.living.until(t, func() bool { return h.living.claiming[holder.Process] == 1 })
		want(t, p.ask("ping", `{}`), "")
		id := h.send("resize", "x")
		got := into[protocol.ClaimResult](t, p.read())
		if len(got.Messages) != 1 || got.Messages[0].ID != id {
			t.Fatalf("claimed %+v, want %s", got, id)
		}
		want(t, p.ask("complete", protocol.CompleteParams{ID: id, Token: got.Messages[0].Token}), "")
	}
}
