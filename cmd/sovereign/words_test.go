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

// TestSlips_IsADistance compares with the plain definition.
func TestSlips_IsADistance(t *testing.T) {
	var plain func(a, b string) int
	plain = func(a, b string) int {
		switch {
		case a == "":
			return len(b)
		case b == "":
			return len(a)
		case a[0] == b[0]:
			return plain(a[1:], b[1:])
		}
		return 1 + min(plain(a[1:], b), plain(a, b[1:]), plain(a[1:], b[1:]))
	}
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := slips(a, b), plain(a, b); got != want {
			t.Fatalf("slips(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}
