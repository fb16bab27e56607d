package main

import (
	"context"
	"errors"
	"testing"
)

// The watch on the wall clock can be set up, and ends with its context: the step
// itself cannot be tried on a machine that others use.
func TestTellClockSet_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	ended := make(chan error, 1)
	go func() { ended <- tellClockSet(ctx, func() { t.Error("the clock was set") }) }()
	cancel(over)
	if err := <-ended; err != over {
		t.Errorf("got %v", err)
	}
}
