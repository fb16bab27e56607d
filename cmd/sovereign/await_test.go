package main

import (
	"context"
	"io"
	"testing"

	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
)

// A supervisor that runs, and has no room for another connection, is not one that does not
// run: who waits for the end of a message is told why, and does not wait for a supervisor
// to start. Take what connecting is refused with for an end and this fails.
func TestAwaitEnd_SaysThatItIsTurnedAway(t *testing.T) {
	data := t.TempDir()
	opened, err := openStore(t.Context(), data, toWrite) // whose lock is a supervisor's
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	socket, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	full := server.New(opened.box, opened.handler, nil, nil)
	full.Limit(0)
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- full.Serve(serving, socket) }()
	defer func() { stop(); <-served }()

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
