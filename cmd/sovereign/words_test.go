package main

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestShellQuote_IsOneWord: a shell reads back what was quoted, whatever it is: a
// subject cannot run a command in `eval "$(sovereign claim --shell)"`.
func TestShellQuote_IsOneWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "")
		out, err := exec.Command("sh", "-c", "printf %s. "+shellQuote(want)).Output()
		if err != nil || string(out) != want+"." {
			t.Fatalf("%q came back as %q, %v", want, out, err)
		}
	})
}
