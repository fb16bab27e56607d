package main

import (
	"fmt"
	"hash/fnv"
	"io"
)

// prefixColour returns, for an actor's name, what to write before and after the
// prefix of its lines: a colour of its own where w may be coloured, else
// nothing.
func prefixColour(w io.Writer) func(actor string) (before, after string) {
	if !colourful(w) {
		return func(string) (string, string) { return "", "" }
	}
	return func(actor string) (string, string) {
		palette := [...]int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}
		h := fnv.New32a()
		_, _ = io.WriteString(h, actor)
		return fmt.Sprintf("\x1b[%dm", palette[h.Sum32()%uint32(len(palette))]), "\x1b[0m"
	}
}
