//go:build !linux

package main

import "context"

// tellClockSet waits for ctx: this system does not say when its clock is set. A
// delayed message that becomes due by such a step is delivered with the next one
// that is sent or falls due.
func tellClockSet(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
