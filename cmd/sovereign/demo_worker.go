package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker"
)

func newDemoWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker NEXT",
		Short:  "One worker of the demonstration",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return demoWork(cmd.Context(), args[0]) },
	}
}

// A demoWorker is a worker that has not heard of claims that are lost: it
// completes whatever it has begun. It is the mailbox that refuses.
type demoWorker struct {
	client  *worker.Client
	next    string // the actor that gets the follow-up
	effort  time.Duration
	gate    net.Conn
	answers *json.Decoder
}

func demoWork(ctx context.Context, next string) error {
	client, err := worker.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	effort, err := time.ParseDuration(os.Getenv("DEMO_WORK"))
	if err != nil {
		return usage("this is a part of `sovereign demo`", "DEMO_WORK is no duration", "run `sovereign demo`")
	}
	// The working folder is the one of actors.yaml.
	gate, err := net.Dial("unix", demoSock)
	if err != nil {
		return fmt.Errorf("reach the demonstration: %w", err)
	}
	defer gate.Close()
	w := demoWorker{client: client, next: next, effort: effort, gate: gate, answers: json.NewDecoder(gate)}
	if err := client.Ready(ctx); err != nil {
		return err
	}
	for {
		messages, _, err := client.Claim(ctx, protocol.ClaimParams{Wait: protocol.Duration(5 * time.Minute)})
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := w.work(ctx, m); err != nil {
				return err
			}
		}
	}
}

// work stages the follow-up of m, is busy for a while, reports, and completes.
func (w demoWorker) work(ctx context.Context, m protocol.Delivery) error {
	staged := protocol.SendParams{Claim: &protocol.ClaimRef{ID: m.ID, Token: m.Token}, Outgoing: protocol.Outgoing{
		To: w.next, Subject: m.Subject, Body: m.Body,
		Headers: map[string]string{demoParent: m.ID, demoToken: m.Token.String()}}}
	followUp, err := w.client.Send(ctx, staged)
	if err != nil {
		return w.unlessFenced(ctx, m, err)
	}
	if err := wait(ctx, w.effort); err != nil { // this is the work
		return err
	}
	if err := w.report(demoReport{Point: demoMidway, Staged: followUp.ID}, m); err != nil {
		return err
	}
	result := fmt.Sprintf("done by attempt %d", m.Attempt)
	_, _, err = w.client.Complete(ctx, protocol.CompleteParams{ID: m.ID, Token: m.Token, Result: protocol.Body(result)})
	if err != nil {
		return w.unlessFenced(ctx, m, err)
	}
	return nil
}

// unlessFenced reports a refusal, after which the worker takes the next message;
// anything else ends it.
func (w demoWorker) unlessFenced(ctx context.Context, m protocol.Delivery, err error) error {
	r, refused := errors.AsType[*refusal.Error](err)
	if !refused || r.Category == refusal.Unavailable || ctx.Err() != nil {
		return err
	}
	return w.report(demoReport{Point: demoRefused, Category: string(r.Category), Why: r.Why}, m)
}

// report tells the demonstration, and returns once it says to go on.
func (w demoWorker) report(r demoReport, m protocol.Delivery) error {
	r.Actor, r.Slot, r.PID = os.Getenv("SOVEREIGN_ACTOR"), os.Getenv("SOVEREIGN_SLOT"), os.Getpid()
	r.Order, r.Message, r.Attempt, r.Token = strings.TrimSpace(m.Subject), m.ID, m.Attempt, m.Token
	if err := json.NewEncoder(w.gate).Encode(r); err != nil {
		return fmt.Errorf("report to the demonstration: %w", err)
	}
	var answer struct{}
	if err := w.answers.Decode(&answer); err != nil {
		return fmt.Errorf("wait for the demonstration: %w", err)
	}
	return nil
}
