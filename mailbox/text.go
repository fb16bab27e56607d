package mailbox

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sovereign-run/sovereign/protocol"
)

// maxReason bounds a reason as it is stored, in bytes.
const maxReason = 4 << 10

// quote shows a name of unknown origin.
func quote(s string) string { return protocol.Quote(s, 80) }

// printable makes a reason fit to be stored and shown whatever bytes it holds:
// invalid UTF-8 and control characters other than newline and tab are escaped,
// and it is cut at maxReason. Content never makes a settle fail.
func printable(s string) string {
	clean := utf8.ValidString(s) && !strings.ContainsFunc(s, control)
	if clean && len(s) <= maxReason {
		return s
	}
	var out strings.Builder
	for len(s) > 0 && out.Len() < maxReason {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[0])|0x100, 16)[1:])
		case control(r):
			q := strconv.QuoteRune(r)
			out.WriteString(q[1 : len(q)-1])
		default:
			out.WriteRune(r)
		}
		s = s[n:]
	}
	if len(s) > 0 || out.Len() > maxReason {
		return protocol.Cut(out.String(), maxReason-len("…"))
	}
	return out.String()
}

func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
