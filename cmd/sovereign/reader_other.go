//go:build !linux

package main

import "io"

// endWithReader does nothing: poll(2) of other systems does not tell reliably that a pipe
// has lost its last reader (macOS' does not at all unless an event is asked for that comes
// with every reader). A command that waits notices with its next line, which ends it.
func endWithReader(io.Writer) (stop func()) { return func() {} }
