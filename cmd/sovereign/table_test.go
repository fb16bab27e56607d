package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestTable_NeverWrapsNorMovesTheCursor: whatever the cells hold, no line is wider
// than the terminal, and nothing that is not printable is written. Drop cutTo or
// printable and this fails.
func TestTable_NeverWrapsNorMovesTheCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := inboxTable()
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			row := make([]string, len(tab.columns))
			for i := range row {
				row[i] = rapid.String().Draw(t, "cell")
			}
			tab.add(row...)
		}
		width := rapid.IntRange(1, 200).Draw(t, "width")
		var b bytes.Buffer
		if err := tab.write(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if cells(line) > width {
				t.Fatalf("%d cells in a terminal of %d: %q", cells(line), width, line)
			}
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q holds %q", line, r)
				}
			}
		}
	})
}

// TestTable_CutsNothingOffATerminal: a width of 0 is no limit.
func TestTable_CutsNothingOffATerminal(t *testing.T) {
	long := strings.Repeat("long ", 100)
	tab := table{columns: []column{{name: "A", gives: 9}, {name: "B"}}}
	tab.add(long, "x")
	var b bytes.Buffer
	if err := tab.write(&b, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), long) || strings.Contains(b.String(), "…") {
		t.Errorf("got %q", b.String())
	}
}

// TestTable_GivesWayInOrder: what gives way most is cut first, an id never.
func TestTable_GivesWayInOrder(t *testing.T) {
	tab := table{columns: []column{{name: "ID"}, {name: "SUBJECT", gives: 9}, {name: "TO", gives: 1}}}
	tab.add("m1", strings.Repeat("s", 40), strings.Repeat("t", 20))
	got := tab.fit(40)
	if got[0] != 2 || got[2] != 20 || got[0]+got[1]+got[2]+2*gap != 40 {
		t.Errorf("widths are %v: the subject gives way first, the id never", got)
	}
}

func TestPrintable_IsUTF8AndKeepsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		got := printable(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q became %q", s, got)
		}
	})
	for in, want := range map[string]string{
		"plain – ü 漢": "plain – ü 漢", "a\nb": `a\nb`, "\x1b[2J": `\x1b[2J`, "\xff": `\xff`, "\uFFFD": "\uFFFD", "a\u202eb": `a\u202eb`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestShort_SaysWhatMatters(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0ms", 999 * time.Millisecond: "999ms", 59 * time.Second: "59s", 61 * time.Second: "1m1s",
		12*time.Minute + 5*time.Second: "12m", 2 * time.Hour: "2h", 2*time.Hour + 3*time.Minute: "2h3m", 25 * time.Hour: "1d1h", 400 * 24 * time.Hour: "400d",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
