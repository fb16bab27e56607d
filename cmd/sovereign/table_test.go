package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/protocol"
)

// TestTable_NeverWrapsNorMovesTheCursor: whatever the cells hold, no line is wider
// than the terminal, and nothing that is not printable is written. Drop cutTo or
// printable and this fails.
func TestTable_NeverWrapsNorMovesTheCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := inboxTable(true)
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
	got, gap := tab.fit(40)
	if got[0] != 2 || got[2] != 20 || got[0]+got[1]+got[2]+2*gap != 40 {
		t.Errorf("widths are %v: the subject gives way first, the id never", got)
	}
}

// TestStatus_KeepsWhatMatters: however narrow the terminal, and however long the
// tokens after a crash, actor, state and the counts are shown, on 80 columns the
// time left of a lease too.
func TestStatus_KeepsWhatMatters(t *testing.T) {
	status := protocol.Status{Actors: []protocol.ActorStatus{{Actor: "resize-pictures", Mode: "worker", State: "up",
		Inbox: protocol.Counts{New: 1234, Claimed: 2, Done: 5678, Dead: 3, Parked: 4},
		Slots: []protocol.SlotStatus{{Slot: 1, State: "up", PID: 1234567, Uptime: protocol.Duration(25 * time.Hour), Restarts: 12,
			Lease: &protocol.SlotLease{Token: 12345678, RemainingMS: 29_000}}}}}}
	for width, want := range map[int][]string{
		40:  {"resi", "up", "1234", "2", "5678", "3", "4"},
		80:  {"resize-pict", "up", "29s", "1234", "2", "5678", "3", "4"},
		120: {"resize-pictures", "1234567", "1d1h", "29s #12345678", "5678"},
	} {
		var b bytes.Buffer
		if err := printStatus(&b, status, width); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		row := lines[2]
		for _, cell := range want {
			_, rest, found := strings.Cut(row, cell)
			if !found {
				t.Errorf("%d columns: %q is missing in order in\n%s", width, cell, b.String())
			}
			row = rest
		}
	}
}

// TestInbox_KeepsWhatMatters: age and attempts stand on a narrow terminal too.
func TestInbox_KeepsWhatMatters(t *testing.T) {
	now := time.Now()
	messages := []protocol.Message{{ID: "m12345678", To: "resize-pictures", From: "somebody-else", Subject: strings.Repeat("s", 60),
		State: "NEW", CreatedAt: now.Add(-3 * time.Minute), Attempts: 1, MaxAttempts: 5,
		LastFailure: &protocol.LastFailure{Category: "exit_status", Reason: strings.Repeat("r", 60)}}}
	for _, width := range []int{40, 80} {
		var b bytes.Buffer
		if err := printInbox(&b, messages, now, width); err != nil {
			t.Fatal(err)
		}
		for _, cell := range []string{"m12345678", "NEW", "3m", "1/5"} {
			if !strings.Contains(b.String(), cell) {
				t.Errorf("%d columns: %q is missing in\n%s", width, cell, b.String())
			}
		}
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

// TestInShort_KeepsTheLastWords: of the lines that a process wrote before its end a status
// shows how it ended and the last one, which of a traceback is the error. Show the first
// and this fails.
func TestInShort_KeepsTheLastWords(t *testing.T) {
	trace := "Traceback (most recent call last):\n  File \"w.py\", line 3, in <module>\n    raise ValueError(\"no: name\")\nValueError: no: name\n"
	for reason, want := range map[string]string{
		"the last process ended: exit status 1: " + trace:                                  "the last process ended: exit status 1: … ValueError: no: name",
		"killed by SIGSEGV: a\n\nb":                                                        "killed by SIGSEGV: … b",
		"killed by SIGKILL by the kernel for lack of memory (limits.memory is 4MiB): a\nb": "killed by SIGKILL by the kernel for lack of memory (limits.memory is 4MiB): … b",
		"two\nlines":                        "two … lines",
		"exit status 3: one: line\n":        "exit status 3: one: line",
		"not ready within 30s":              "not ready within 30s",
		"":                                  "",
		"clears\x1b[2J\nthe screen \x1b[2J": "clears\\x1b[2J … the screen \\x1b[2J",
	} {
		if got := inShort(reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
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
