package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker"
)

// Call comes back with the result, with the failure and its receipt where the message
// is dead, with gone where it was removed, and when its context ends: never not at
// all. The answer to a call that is repeated under its key is that of the first.
func TestSDK_Call(t *testing.T) {
	h := newHouse(t)
	caller, _ := h.sdk(h.birth("resize", 1, config.Worker))
	answers, _ := h.sdk(h.birth("other", 1, config.Worker))
	ctx := t.Context()
	handled := make(chan string, 9)
	go func() {
		_ = answers.Run(ctx, func(_ context.Context, m *worker.Message) error {
			handled <- m.ID
			if string(m.Body) == "bad" {
				return worker.Dead(errors.New("no such picture"))
			}
			m.Result = append([]byte("re: "), m.Body...)
			return nil
		})
	}()
	for range 2 {
		got, err := caller.Call(ctx, protocol.Outgoing{To: "other", Body: []byte("\xff"), Key: "once"})
		if err != nil || string(got) != "re: \xff" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	first := <-handled
	_, err := caller.Call(ctx, protocol.Outgoing{To: "other", Body: []byte("bad")})
	failed, ok := errors.AsType[*worker.CallError](err)
	if !ok || failed.State != "DEAD" || failed.Failure.Reason != "no such picture" || failed.Receipt == nil || failed.Receipt.Attempt != 1 {
		t.Fatalf("%+v, %v", failed, err)
	}
	if id := <-handled; id == first || id != failed.ID {
		t.Fatal(id, failed.ID)
	}
	if _, err := caller.Call(ctx, protocol.Outgoing{To: "nobody"}); !refusal.Has(err, refusal.UnknownActor) {
		t.Fatal(err)
	}

	// Removed while it waits: it is gone, and what was known of it is told.
	if err := h.box.SetPaused(ctx, "other", true); err != nil {
		t.Fatal(err)
	}
	toGo := protocol.Outgoing{To: "other", Key: "to go", KeyTTL: protocol.Duration(time.Hour)} // known also once it is gone
	sent, err := caller.Send(ctx, protocol.SendParams{Outgoing: toGo})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := caller.Call(ctx, toGo) // the one that is there already
		gone <- err
	}()
	id, err := mailbox.ParseID(sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.box.Drop(ctx, id); err != nil {
		t.Fatal(err)
	}
	if failed, ok := errors.AsType[*worker.CallError](<-gone); !ok || !failed.Gone || failed.ID != sent.ID {
		t.Fatalf("%+v", failed)
	}

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := caller.Call(short, protocol.Outgoing{To: "other"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	// What others sent is not a worker's to see.
	if _, err := caller.Await(ctx, h.send("other", "")); !refusal.Has(err, refusal.PermissionDenied) {
		t.Fatal(err)
	}
	if _, err := caller.Await(ctx, "m999999"); !refusal.Has(err, refusal.MessageMissing) {
		t.Fatal(err)
	}
	_ = answers.Close()
	_ = caller.Close()
	if _, err := caller.Call(ctx, protocol.Outgoing{To: "other"}); !refusal.Has(err, refusal.Unavailable) {
		t.Fatal(err)
	}
}

// A reply that is sent asynchronously goes to the actor that the message names, with
// what it is known by there.
func TestSDK_Reply(t *testing.T) {
	h := newHouse(t)
	asks, _ := h.sdk(h.birth("resize", 1, config.Worker))
	answers, _ := h.sdk(h.birth("other", 1, config.Worker))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = answers.Run(ctx, func(ctx context.Context, m *worker.Message) error {
			_, err := m.Reply(ctx, []byte("answer"))
			return err
		})
	}()
	sent, err := asks.Send(ctx, protocol.SendParams{Outgoing: protocol.Outgoing{To: "other",
		Headers: map[string]string{protocol.HeaderReplyTo: "resize", protocol.HeaderCorrelationID: "q7"}}})
	if err != nil {
		t.Fatal(err)
	}
	err = asks.Run(ctx, func(_ context.Context, m *worker.Message) error {
		if string(m.Body) != "answer" || m.From != "other" || m.Headers[protocol.HeaderCorrelationID] != "q7" {
			t.Errorf("%q from %s, %v, to %s", m.Body, m.From, m.Headers, sent.ID)
		}
		cancel()
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
