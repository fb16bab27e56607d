package main

import (
	"bytes"
	"testing"

	"github.com/sovereign-run/sovereign/supervisor/capture"
)

// A line is the console's only during the call, also one that is no text and waits to be
// written. Keep the line's own bytes and this fails.
func TestJSONConsole_KeepsNoBytesOfALine(t *testing.T) {
	text := []byte{0xff, 'a'}
	line := jsonLine(capture.Line{Actor: "w", Slot: 1, Text: text})
	copy(text, "no")
	if !bytes.Equal(line.Base64, []byte{0xff, 'a'}) {
		t.Errorf("the line has become %q", line.Base64)
	}
}
