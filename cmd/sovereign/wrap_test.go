package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/protocol"
)

// TestWrapped_FitsAndLosesNothing: no line is wider than the terminal, and all lines
// together say what the text said. Break within a character of two cells and this fails.
func TestWrapped_FitsAndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("ab `世é ")), 0, 80, -1).Draw(t, "s")
		width := rapid.IntRange(5, 40).Draw(t, "width")
		lines := wrapped(s, width, 0)
		for _, line := range lines {
			if cells(line) > width {
				t.Errorf("%q is wider than %d", line, width)
			}
		}
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got := squeeze(strings.Join(lines, "")); got != squeeze(s) {
			t.Errorf("%q became %q", s, lines)
		}
	})
}

// TestWrapped_BreaksAtBlanks: between words, not within a command in backquotes, and what
// goes beyond the limit of lines says so.
func TestWrapped_BreaksAtBlanks(t *testing.T) {
	const s = "price: next: correct its command, then run `sovereign start price` again"
	for _, c := range []struct {
		width, most int
		want        string
	}{
		{0, 1, s},
		{80, 1, s},
		{50, 0, "price: next: correct its command, then run\n  `sovereign start price` again"},
		{24, 0, "price: next: correct its\n  command, then run\n  `sovereign start\n  price` again"},
		{24, 2, "price: next: correct its\n  command, then run `so…"},
	} {
		if got := strings.Join(wrapped(s, c.width, c.most), "\n"); got != c.want {
			t.Errorf("%d columns, %d lines: got\n%s\nwant\n%s", c.width, c.most, got, c.want)
		}
	}
}

// TestStatus_SaysAllOfANote: why an actor has failed and what to do is there on 80
// columns too, and of which actors.yaml it is. Cut the notes, or the first line, at the
// terminal's edge and this fails.
func TestStatus_SaysAllOfANote(t *testing.T) {
	why := "its intensity of 5 within 1m is used up; spawn failed: ENOENT: /srv/app/releases/current/bin/price: no such file"
	next := "correct its command, cwd, env or user in actors.yaml, then run `sovereign reload`"
	config := "/srv/app/releases/2026-11-30T21:04:17Z/sovereign/actors.yaml"
	status := protocol.Status{Supervisor: protocol.SupervisorStatus{State: "running", PID: 4711, Uptime: protocol.Duration(3 * time.Minute), Config: config}, Actors: []protocol.ActorStatus{{Actor: "price", Mode: "worker", State: "failed", Why: why,
		Slots: []protocol.SlotStatus{{Slot: 1, State: "failed", Why: why, Next: next}}}}}
	var b bytes.Buffer
	if err := printStatus(&b, status, 80); err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{why, next, "up 3m, " + config} {
		if !strings.Contains(flat, want) {
			t.Errorf("%q is not all in\n%s", want, b.String())
		}
	}
}

// TestShow_WritesOutLongReasons: a reason for which the table of attempts has no room, and
// one of several lines, is written out below, once where attempts ended alike; one that the
// table has whole is not repeated. Have the table show every line of a stack and this fails.
func TestShow_WritesOutLongReasons(t *testing.T) {
	receipt := func(attempt int, reason string) protocol.Receipt {
		return protocol.Receipt{Attempt: attempt, Actor: "resize", Slot: 1, Category: "failed_by_worker", Counted: true, Reason: reason}
	}
	lines, long := "panic: no picture\n\ngoroutine 7", "ValueError: there is no picture of that name in the bucket"
	m := protocol.MessageDetail{Receipts: []protocol.Receipt{receipt(1, long), receipt(2, long), receipt(3, "busy"), receipt(4, lines)}}
	m.ID, m.To, m.State = "m1", "resize", "NEW"
	m.LastFailure = &protocol.LastFailure{Category: "failed_by_worker", Reason: lines}
	for width, want := range map[int]int{0: 0, 80: 1, 200: 0} {
		var b bytes.Buffer
		if err := printMessage(&b, m, time.Now(), width); err != nil {
			t.Fatal(err)
		}
		shown := b.String()
		if got := strings.Count(shown, "\nattempts 1 to 2, failed_by_worker:\n  "+long+"\n"); got != want {
			t.Errorf("%d columns: the reason is written out %d times, want %d:\n%s", width, got, want, shown)
		}
		if strings.Contains(shown, "attempt 3, ") {
			t.Errorf("%d columns: what is in the table is repeated:\n%s", width, shown)
		}
		if !strings.HasSuffix(shown, "\nattempt 4, failed_by_worker:\n  panic: no picture\n  \n  goroutine 7\n") || strings.Contains(shown, `\n`) {
			t.Errorf("%d columns: lines are not written out as lines:\n%s", width, shown)
		}
	}
	m.Receipts = nil // as of one that was imported
	var b bytes.Buffer
	if err := printMessage(&b, m, time.Now(), 0); err != nil || !strings.HasSuffix(b.String(), "\nlast failure:\n  panic: no picture\n  \n  goroutine 7\n") {
		t.Errorf("%v: without receipts the last failure is not written out:\n%s", err, b.String())
	}
}

// TestShow_SaysPoisonOnce: that a message is poison stands on a line of its own, and not at
// the end of why it waits too. Show m.Why as it is and this fails.
func TestShow_SaysPoisonOnce(t *testing.T) {
	m := protocol.MessageDetail{Poison: "3 processes in a row died while they worked on it: it may be poison"}
	m.ID, m.To, m.State, m.Why = "m1", "resize", "PARKED", "it is PARKED and waits for a person; "+m.Poison
	var b bytes.Buffer
	if err := printMessage(&b, m, time.Now(), 80); err != nil {
		t.Fatal(err)
	}
	if shown := b.String(); strings.Count(shown, m.Poison) != 1 || !strings.Contains(shown, "it is PARKED and waits for a person\n") {
		t.Errorf("poison is not said once:\n%s", shown)
	}
}

// TestHelp_FitsTheTerminal: no line of any command's help is wider than a terminal of 60
// or 80 columns but its examples, which are copied, and nothing is lost. Leave it as it was written and this fails.
func TestHelp_FitsTheTerminal(t *testing.T) {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		var b bytes.Buffer
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{60, 80} {
			text := fitText(b.String(), width)
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if cells(line) > width && !strings.Contains(cmd.Example, line) {
					t.Errorf("%s, %d columns: %q", cmd.CommandPath(), width, line)
				}
			}
			if squeeze(text) != squeeze(b.String()) {
				t.Errorf("%s, %d columns: something is missing in\n%s", cmd.CommandPath(), width, text)
			}
		}
		for _, child := range cmd.Commands() {
			look(child)
		}
	}
	look(newRoot())
}
