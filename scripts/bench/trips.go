package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// A contender is one way to do round trips.
type contender struct {
	name  string
	next  bool // complete and claim in one exchange
	most  int  // messages of a crowd: who is slow has fewer; 0 for as many as asked for
	start func(ctx context.Context, workers int) (broker, error)
}

// contenders are the product's and those peers that are installed.
func (b *bench) contenders() []contender {
	ours := func(sdk bool) func(context.Context, int) (broker, error) {
		return func(ctx context.Context, n int) (broker, error) { return b.product(ctx, n, sdk) }
	}
	all := []contender{
		{name: "in process", start: b.inProcess},
		{name: "sockets", start: ours(false)},
		{name: "sockets, complete+next", start: ours(false), next: true},
		{name: "sockets, Go SDK", start: ours(true)},
	}
	redis := func(context.Context, int) (broker, error) { return b.redis() }
	if _, err := exec.LookPath("redis-server"); err == nil {
		all = append(all, contender{name: "Redis, always", start: redis},
			contender{name: "Redis, complete+next", start: redis, next: true})
	} else {
		fmt.Println("Redis is left out: redis-server is not installed (apt-get install redis-server)")
	}
	if _, err := exec.LookPath("beanstalkd"); err == nil {
		all = append(all, contender{name: "beanstalkd -f0",
			start: func(context.Context, int) (broker, error) { return b.beanstalkd() }})
	} else {
		fmt.Println("beanstalkd is left out: it is not installed (apt-get install beanstalkd)")
	}
	if b.natsServer != "" {
		all = append(all, contender{name: "NATS, sync always", most: 10_000,
			start: func(context.Context, int) (broker, error) { return b.nats() }})
	} else {
		fmt.Println("NATS is left out: its server was not built")
	}
	if b.pgPrograms != "" {
		all = append(all, contender{name: "PostgreSQL", most: 20_000,
			start: func(context.Context, int) (broker, error) { return b.postgres() }})
	} else {
		fmt.Println("PostgreSQL is left out: it is not installed (apt-get install postgresql)")
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !strings.Contains(c.name, b.only) })
}

// messages is how many of n a crowd of it passes.
func (c contender) messages(n int) int {
	if c.most > 0 {
		return min(n, c.most)
	}
	return n
}

func (b *bench) inProcess(ctx context.Context, _ int) (broker, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	return openStore(ctx, dir)
}

// A standing is what the rounds found of one contender.
type standing struct{ rate, whole, whole99, send, send99, claim, done, cpu series }

func (s *standing) add(t trip) {
	s.rate = append(s.rate, t.rate)
	s.whole, s.whole99 = append(s.whole, t.whole.at(0.5)), append(s.whole99, t.whole.at(0.99))
	s.send, s.send99 = append(s.send, t.send.at(0.5)), append(s.send99, t.send.at(0.99))
	s.claim, s.done = append(s.claim, t.claim.at(0.5)), append(s.done, t.done.at(0.5))
	s.cpu = append(s.cpu, t.cpu)
}

// trips measures round trips: all contenders take turns.
func (b *bench) trips(ctx context.Context) error {
	all := b.contenders()
	one, many := make([]standing, len(all)), make([]standing, len(all))
	for range b.rounds {
		for i, c := range all {
			if !c.next { // alone there is nothing next
				if err := b.turn(ctx, c, 1, &one[i], func(s broker) (trip, error) { return alone(ctx, s, b.alone) }); err != nil {
					return err
				}
			}
			if err := b.turn(ctx, c, side, &many[i], func(s broker) (trip, error) { return crowded(ctx, s, c.messages(b.crowd), c.next) }); err != nil {
				return err
			}
		}
	}
	fmt.Printf("1 client, body of 1 KiB, %d round trips in each of %d rounds; times in ms\n\n", b.alone, b.rounds)
	t := newTable("", "round trips/s", "p50", "p99", "send", "claim", "complete", "CPU µs/msg", "x Redis", "x beanstalkd", "x NATS", "x PostgreSQL")
	for i, c := range all {
		if s := one[i]; !c.next {
			t.row(append([]string{c.name, s.rate.String(), s.whole.String(), s.whole99.String(), s.send.String(), s.claim.String(),
				s.done.String(), cpuCell(s.cpu)}, ratios(all, one, s.rate)...)...)
		}
	}
	t.end()
	fmt.Printf("\n%d senders and %d workers, body of 1 KiB, %d messages%s in each of %d rounds; times in ms\n\n",
		side, side, b.crowd, fewer(all, b.crowd), b.rounds)
	t = newTable("", "messages/s", "send p50", "send p99", "CPU µs/msg", "x Redis", "x beanstalkd", "x NATS", "x PostgreSQL")
	for i, c := range all {
		s := many[i]
		t.row(append([]string{c.name, s.rate.String(), s.send.String(), s.send99.String(), cpuCell(s.cpu)}, ratios(all, many, s.rate)...)...)
	}
	t.end()
	return nil
}

// turn starts a contender afresh, measures it once, and ends it.
func (b *bench) turn(ctx context.Context, c contender, workers int, to *standing, measure func(broker) (trip, error)) error {
	s, err := c.start(ctx, workers)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	t, err := measure(s)
	if err = errors.Join(err, s.stop()); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	to.add(t)
	return nil
}

// fewer says who has not as many as n messages.
func fewer(all []contender, n int) (text string) {
	for _, c := range all {
		if most := c.messages(n); most < n {
			text += fmt.Sprintf(", %s %d", c.name, most)
		}
	}
	return text
}

// against are the rows that the others are compared with, in the order of their columns.
var against = []string{"Redis, always", "beanstalkd -f0", "NATS, sync always", "PostgreSQL"}

// ratios is how many times the median rate of each of these ours is.
func ratios(all []contender, found []standing, ours series) (cells []string) {
	for _, name := range against {
		cells = append(cells, ratio(ours, rateOf(all, found, name)))
	}
	return cells
}

func rateOf(all []contender, found []standing, name string) series {
	for i, c := range all {
		if c.name == name {
			return found[i].rate
		}
	}
	return nil
}

// ratio is how many times a peer's median rate ours is.
func ratio(ours, peer series) string {
	if len(peer) == 0 || peer.median() == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ours.median()/peer.median())
}

// cpuCell leaves out what cannot be told from the clients.
func cpuCell(s series) string {
	if s.median() == 0 {
		return "-"
	}
	return s.String()
}
