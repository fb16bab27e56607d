package main

import (
	"context"
	"fmt"
)

// recipients measures 64 + 64 clients of one actor and of 64: each sender sends to all
// of them in turn, and each has one worker.
func (b *bench) recipients(ctx context.Context) error {
	names := make([]string, side)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", recipient, i+1)
	}
	rows := []struct {
		contender
		found standing
	}{
		{contender: contender{name: "1 recipient", start: func(ctx context.Context, n int) (broker, error) {
			return b.product(ctx, n, false)
		}}},
		{contender: contender{name: fmt.Sprintf("%d recipients", side), start: func(ctx context.Context, n int) (broker, error) {
			dir, err := b.folder()
			if err != nil {
				return nil, err
			}
			return b.actorsIn(ctx, dir, n/side, "", names...)
		}}},
	}
	for _, next := range []bool{false, true} {
		for i := range rows {
			rows[i].found = standing{}
		}
		for range b.rounds {
			for i := range rows {
				r := &rows[i]
				if err := b.turn(ctx, r.contender, side, &r.found, func(s broker) (trip, error) { return crowded(ctx, s, b.crowd, next) }); err != nil {
					return err
				}
			}
		}
		how := "one operation a call"
		if next {
			how = "complete+next"
		}
		fmt.Printf("%d senders and %d workers, %s; body of 1 KiB, %d messages in each of %d rounds; times in ms\n\n",
			side, side, how, b.crowd, b.rounds)
		t := newTable("", "messages/s", "send p50", "send p99", "CPU µs/msg", "% of the rate with one")
		for _, r := range rows {
			s := r.found
			t.row(r.name, s.rate.String(), s.send.String(), s.send99.String(), cpuCell(s.cpu), figure(100*s.rate.median()/rows[0].found.rate.median()))
		}
		t.end()
		if !next {
			fmt.Println()
		}
	}
	return nil
}
