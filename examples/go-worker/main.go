// Factor is a worker that takes numbers apart.
package main

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"strings"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/worker"
)

func main() {
	// SIGTERM ends no message: Run then claims no more, and returns when those at
	// hand are done.
	if err := worker.Run(context.Background(), factor); err != nil {
		log.Fatal(err)
	}
}

// factor works on one message. What it returns settles it: nil completes,
// Dead gives it up, any other error has it tried again. When the claim is lost, ctx
// ends.
func factor(ctx context.Context, m *worker.Message) error {
	n, err := strconv.ParseUint(strings.TrimSpace(string(m.Body)), 10, 64)
	if err != nil || n < 2 {
		return worker.Dead(fmt.Errorf("%q is no number above 1", m.Body))
	}
	factors, err := primes(ctx, n)
	if err != nil {
		return err
	}
	m.Result = fmt.Appendf(nil, "%d = %s\n", n, strings.Join(factors, " × "))
	// A follow-up: visible when this message is completed, or never.
	_, err = m.Send(ctx, protocol.Outgoing{To: "archive", Subject: m.ID, Body: m.Result})
	return err
}

func primes(ctx context.Context, n uint64) (factors []string, err error) {
	for p := uint64(2); n > 1; p++ {
		if p > n/p {
			p = n // what is left is a prime
		}
		for n%p == 0 {
			factors = append(factors, strconv.FormatUint(p, 10))
			n /= p
		}
		if p%(1<<20) == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return factors, nil
}
