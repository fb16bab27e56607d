package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"

	"github.com/sovereign-run/sovereign/protocol"
)

// A demoReport is what a worker of the demonstration says of its message. It
// waits there until it is answered.
type demoReport struct {
	Point    string         `json:"point"` // demoMidway or demoRefused
	Actor    string         `json:"actor"`
	Slot     string         `json:"slot"`
	PID      int            `json:"pid"`
	Order    string         `json:"order"` // the message's subject
	Message  string         `json:"message"`
	Attempt  int            `json:"attempt"`
	Token    protocol.Token `json:"token"`
	Staged   string         `json:"staged,omitempty"`   // the follow-up that waits for the completion
	Category string         `json:"category,omitempty"` // of the refusal
	Why      string         `json:"why,omitempty"`

	goOn func() // answers it
}

const (
	demoMidway  = "midway"  // the follow-up is staged, the message not yet completed
	demoRefused = "refused" // the completion was refused
)

// A demoGate is where the workers report, so that what is done to them is done
// at a known point of their work.
type demoGate struct {
	listener *net.UnixListener
	reports  chan demoReport
	closing  context.Context
	close    context.CancelFunc
	readers  sync.WaitGroup
}

func openDemoGate(path string) (*demoGate, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	g := &demoGate{listener: listener, reports: make(chan demoReport)}
	g.closing, g.close = context.WithCancel(context.Background())
	g.readers.Go(g.accept)
	return g, nil
}

func (g *demoGate) accept() {
	for {
		conn, err := g.listener.AcceptUnix()
		if err != nil {
			return // closed
		}
		g.readers.Go(func() { g.read(conn) })
	}
}

// read hands on what one worker reports, until it hangs up.
func (g *demoGate) read(conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(g.closing, func() { _ = conn.Close() })()
	for lines := json.NewDecoder(conn); ; {
		var r demoReport
		if err := lines.Decode(&r); err != nil {
			return
		}
		r.goOn = func() { _, _ = conn.Write([]byte("{}\n")) } // a worker that is gone needs no answer
		select {
		case g.reports <- r:
		case <-g.closing.Done():
			return
		}
	}
}

// Close hangs up on everybody.
func (g *demoGate) Close() error {
	g.close()
	err := g.listener.Close()
	g.readers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
