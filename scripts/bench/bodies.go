package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// bodies measures how the cost of a message grows with its body.
func (b *bench) bodies(ctx context.Context) error {
	const half = 8
	found := make([]standing, len(b.sizes))
	for range b.rounds {
		for i, size := range b.sizes {
			c := contender{name: fmt.Sprintf("%d bytes", size), start: func(ctx context.Context, workers int) (broker, error) {
				return b.product(ctx, workers, false)
			}}
			if !strings.Contains(c.name, b.only) {
				continue
			}
			if err := b.turn(ctx, c, half, &found[i], func(s broker) (trip, error) {
				return crowd{senders: half, workers: half, body: size}.run(ctx, s, b.messagesOf(size))
			}); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%d senders and %d workers; %d messages, or as many as make %d MB, in each of %d rounds; times in ms\n\n",
		half, half, b.crowd, b.volume/1e6, b.rounds)
	t := newTable("bytes", "messages", "messages/s", "MB/s", "send p50", "send p99", "CPU µs/msg", "CPU ns/byte")
	for i, size := range b.sizes {
		s := found[i]
		if len(s.rate) == 0 {
			continue // not asked for
		}
		t.row(strconv.Itoa(size), strconv.Itoa(b.messagesOf(size)), s.rate.String(), figure(s.rate.median()*float64(size)/1e6),
			s.send.String(), s.send99.String(), cpuCell(s.cpu), figure(s.cpu.median()*1000/float64(size)))
	}
	t.end()
	return nil
}

// messagesOf is how many messages of so many bytes a round passes.
func (b *bench) messagesOf(size int) int { return max(64, min(b.crowd, b.volume/size)) }
