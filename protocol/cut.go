package protocol

import (
	"strconv"
	"strings"
)

// Cut returns s, or where it is longer than n bytes its first n, without a rune that
// they would break, and "…" behind them.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Quote is Cut in quotes, with what cannot be printed escaped: for an error that names what
// it was given.
func Quote(s string, n int) string { return strconv.Quote(Cut(s, n)) }
