package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/worker"
)

// The smallest worker: it completes each message with its body in capitals.
func Example() {
	err := worker.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
		m.Result = []byte(strings.ToUpper(string(m.Body)))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Four messages at a time. SIGTERM, which the supervisor sends together with the
// drain notification, lets those that run finish.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := worker.Run(ctx, func(ctx context.Context, m *worker.Message) error {
		select {
		case <-time.After(time.Second): // the work
			return nil
		case <-ctx.Done(): // the claim is lost: nothing done from here on counts
			return context.Cause(ctx)
		}
	}, worker.Concurrency(4))
	if err != nil {
		log.Fatal(err)
	}
}

// What is sent within an attempt becomes visible when it completes, or never.
func ExampleMessage_Send() {
	_ = worker.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
		for _, part := range strings.Fields(string(m.Body)) {
			if _, err := m.Send(ctx, protocol.Outgoing{To: "resize", Body: protocol.Body(part)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Before a step that cannot be taken back the claim is checked, and the resource
// is told the token, so that it can refuse a smaller one that comes later.
func ExampleMessage_Check() {
	charge := func(id string, fence uint64) error { return nil }
	_ = worker.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
		if err := m.Check(ctx); err != nil {
			return err
		}
		return charge(string(m.Body), uint64(m.Token))
	})
}

// How an attempt fails is up to the error that the handler returns.
func ExampleRetry() {
	var errBusy, errNoImage error = errors.New("busy"), errors.New("no image")
	resize := func(body []byte) error { return nil }
	_ = worker.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
		err := resize(m.Body)
		switch {
		case errors.Is(err, errBusy):
			return worker.Retry(time.Minute, err) // charged, and again in a minute
		case errors.Is(err, errNoImage):
			return worker.Dead(err) // the message itself is bad
		}
		return err // charged, and again after the actor's backoff
	})
}

// A loop of one's own, here over a connection in memory whose other end stands in
// for the supervisor.
func ExampleClient() {
	ours, supervisor := net.Pipe()
	go func() {
		lines, out := protocol.NewDecoder(supervisor), protocol.NewEncoder(supervisor)
		for _, result := range []any{
			protocol.ClaimResult{Messages: []protocol.Delivery{{ID: "m1", Token: 7, Body: protocol.Body("hello")}}},
			protocol.CompleteResult{State: "DONE"},
		} {
			line, err := lines.Line()
			if err != nil {
				return
			}
			req, _ := protocol.ParseRequest(line)
			_ = out.Encode(&protocol.Response{JSONRPC: "2.0", ID: req.ID, Result: result})
		}
	}()

	c := worker.NewClient(ours, protocol.Identity{}) // or worker.Open()
	defer c.Close()
	ctx := context.Background()
	messages, _, err := c.Claim(ctx, protocol.ClaimParams{Wait: protocol.Duration(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		out, _, err := c.Complete(ctx, protocol.CompleteParams{ID: m.ID, Token: m.Token, Result: m.Body})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.ID, string(m.Body), out.State)
	}
	// Output: m1 hello DONE
}
