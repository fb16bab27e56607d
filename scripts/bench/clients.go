package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// manyClients measures how the cost of a message grows with the number of clients: one
// that sends, claims and completes in turn, then half of them senders and half workers,
// each worker a living child.
func (b *bench) manyClients(ctx context.Context) error {
	found := make([]standing, len(b.clients))
	for range b.rounds {
		for i, n := range b.clients {
			c := contender{name: fmt.Sprintf("%d clients", n), start: func(ctx context.Context, workers int) (broker, error) {
				return b.product(ctx, workers, false)
			}}
			if !strings.Contains(c.name, b.only) {
				continue
			}
			measure := func(s broker) (trip, error) {
				if n == 1 {
					return alone(ctx, s, b.alone)
				}
				return crowd{senders: n / 2, workers: n / 2, body: bodySize}.run(ctx, s, b.crowd)
			}
			if err := b.turn(ctx, c, max(1, n/2), &found[i], measure); err != nil {
				return err
			}
		}
	}
	fmt.Printf("half of the clients send, half work; body of 1 KiB, %d messages (1 client: %d) in each of %d rounds; times in ms\n\n",
		b.crowd, b.alone, b.rounds)
	t := newTable("clients", "messages/s", "send p50", "send p99", "CPU µs/msg")
	for i, n := range b.clients {
		s := found[i]
		if len(s.rate) == 0 {
			continue // not asked for
		}
		t.row(strconv.Itoa(n), s.rate.String(), s.send.String(), s.send99.String(), cpuCell(s.cpu))
	}
	t.end()
	return nil
}
