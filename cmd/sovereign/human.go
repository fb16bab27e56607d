package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// short is a duration as people say it: one unit, or two where the second one
// matters. Negative durations are "0s".
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m")
	default:
		return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
	}
}

func two(big int, unit string, small int, part string) string {
	if small == 0 || big >= 10 {
		return fmt.Sprintf("%d%s", big, unit)
	}
	return fmt.Sprintf("%d%s%d%s", big, unit, small, part)
}

// age is how long ago at was; "-" for no time.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return short(now.Sub(at))
}

// clock is a time for people: local, with the day only where it is another one.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	switch {
	case at.IsZero():
		return "-"
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		return at.Format("15:04:05")
	case at.Year() == now.Year():
		return at.Format("Jan _2 15:04:05")
	default:
		return at.Format("2006-01-02 15:04:05")
	}
}

// size is a number of bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 3 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[prefix])
}

// plural is "1 message", "2 messages".
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// printable is s on one line and without anything that moves a cursor or
// changes a terminal: what cannot be shown is escaped. Subjects and reasons come
// from anybody.
func printable(s string) string { return escape(s, "") }

// howItEnded is the part of a reason that says how a process ended, ahead of the last lines
// that it wrote.
var howItEnded = regexp.MustCompile(`^.*?(exit status [0-9]+|killed by SIG[A-Z0-9+-]+)[^:\n]*: `)

// inShort is a reason on one line: of several lines that a process wrote last, the last
// one alone, for that is where a program says what was wrong.
func inShort(reason string) string {
	var lines []string
	for line := range strings.Lines(reason) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) < 2 {
		return printable(strings.TrimSpace(reason))
	}
	head := howItEnded.FindString(lines[0])
	if head == "" {
		head = lines[0] + " "
	}
	return printable(head + "… " + lines[len(lines)-1])
}

// printableLines is printable, but keeps line ends and tabs.
func printableLines(s string) string { return escape(s, "\n\t") }

// forTerminal is content as a terminal may be given it: printable, ending with a
// line end where it holds anything.
func forTerminal(content []byte) []byte {
	if len(content) == 0 {
		return nil
	}
	return []byte(strings.TrimSuffix(printableLines(string(content)), "\n") + "\n")
}

func escape(s, keep string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString("\\n")
		case r == '\t':
			b.WriteString("\\t")
		case r == '\r':
			b.WriteString("\\r")
		case r < 0x80:
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
