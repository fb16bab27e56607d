package main

import (
	"context"
	"io"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// serveStore serves a new store in data, as a supervisor does, with room for so many
// connections, until the test ends.
func serveStore(t *testing.T, data string, room int) {
	t.Helper()
	opened, err := openStore(t.Context(), data, toWrite) // whose lock is a supervisor's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	socket, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(opened.box, opened.handler, nil, nil)
	s.Limit(room)
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(serving, socket) }()
	t.Cleanup(func() { stop(); <-served })
}

// A supervisor that runs, and has no room for another connection, is not one that does not
// run: who waits for the end of a message is told why, and does not wait for a supervisor
// to start. Take what connecting is refused with for an end and this fails.
func TestAwaitEnd_SaysThatItIsTurnedAway(t *testing.T) {
	data := t.TempDir()
	serveStore(t, data, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	idle := func() {
		t.Error("it waits for a supervisor, and one runs")
		cancel()
	}
	if _, err := awaitEnd(ctx, place{data: data}, "m-1", io.Discard, idle); !refusal.Has(err, refusal.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// Where nothing has happened for as long as events are kept the journal is empty: who waits
// for more messages than are waited for at a time looks after the others all the same, from
// its begin on. Take that place for one that is not known yet and this fails: it was asked
// for again and again, as fast as the supervisor could answer.
func TestBehindQueue_LooksWhereTheJournalIsEmpty(t *testing.T) {
	data := t.TempDir()
	serveStore(t, data, 100)
	conn, err := connectTo(t.Context(), place{data: data}, toRead)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	gone := false
	m := &sentMessage{id: "m7", lines: []int{1}}
	w := &batchWait{left: map[string]*sentMessage{m.id: m}, ended: func(_ *sentMessage, d *protocol.MessageDetail) error {
		gone = d == nil
		return nil
	}}
	b := behindQueue{batchWait: w, client: conn.client, looking: map[protocol.ID]*sentMessage{}}
	for answers := 0; w.count() > 0 && answers < 10; answers++ {
		if err := b.ask(t.Context(), w.rest); err != nil {
			t.Fatal(err)
		}
		line, err := conn.client.next(t.Context())
		if err == nil {
			err = b.answered(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !gone {
		t.Error("a message that is no more was not looked at")
	}
}
