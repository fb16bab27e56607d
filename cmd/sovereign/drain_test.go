package main

import (
	"slices"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

// TestDrained_ByWhatIsLeft is the rule of --drain, as interface.md has it: NEW
// (delayed too) and CLAIMED keep it running, unless nobody works for what is left.
func TestDrained_ByWhatIsLeft(t *testing.T) {
	actors := []config.Actor{{Name: "a"}, {Name: "b"}}
	counts := func(a, b mailbox.Counts) map[string]mailbox.Counts { return map[string]mailbox.Counts{"a": a, "b": b} }
	for _, tc := range []struct {
		name    string
		counts  map[string]mailbox.Counts
		blocked map[string]string
		done    bool
		idle    int
	}{
		{"nothing left", counts(mailbox.Counts{Done: 3}, mailbox.Counts{Dead: 1}), nil, true, 0},
		{"an actor that nobody declared", map[string]mailbox.Counts{"c": {New: 1}}, nil, true, 0},
		{"one waits", counts(mailbox.Counts{}, mailbox.Counts{New: 1}), nil, false, 0},
		{"one runs", counts(mailbox.Counts{Claimed: 1}, mailbox.Counts{}), nil, false, 0},
		{"what is left is paused", counts(mailbox.Counts{New: 2}, mailbox.Counts{}), map[string]string{"a": "paused"}, true, 1},
		{"paused, but one still runs", counts(mailbox.Counts{New: 1, Claimed: 1}, mailbox.Counts{}), map[string]string{"a": "paused"}, false, 0},
		{"one paused, one at work", counts(mailbox.Counts{New: 1}, mailbox.Counts{New: 1}), map[string]string{"a": "paused"}, false, 0},
	} {
		done, idle := drained(actors, tc.counts, tc.blocked)
		if done != tc.done || len(idle) != tc.idle {
			t.Errorf("%s: done %v, idle %q", tc.name, done, idle)
		}
	}
}

// TestDrainWaits_NamesWhatIsLeft: who drains is told of each actor with something left how
// much that is and when it is due, and of nothing while anything runs. Say so of running
// ones and a busy run writes a line every few seconds.
func TestDrainWaits_NamesWhatIsLeft(t *testing.T) {
	actors := []config.Actor{{Name: "due"}, {Name: "paused"}, {Name: "done"}, {Name: "ready"}}
	tomorrow := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	counts := map[string]mailbox.Counts{"due": {New: 2}, "paused": {New: 1}, "done": {Done: 7}, "ready": {New: 3}, "other": {New: 1}}
	got := drainWaits(actors, counts, map[string]string{"paused": "paused"}, map[string]time.Time{"due": tomorrow})
	want := []drainWait{{"due", 2, tomorrow, ""}, {"paused", 1, time.Time{}, "paused"}, {"ready", 3, time.Time{}, "not taken yet"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	counts["done"] = mailbox.Counts{Claimed: 1}
	if got := drainWaits(actors, counts, nil, nil); got != nil {
		t.Errorf("while one runs: %+v", got)
	}
}

// TestBlocked_WhoWorksOnNothing: an actor is blocked once no slot of it will work
// before a person acts; who waits for it is blocked too. A slot that has not begun
// is not.
func TestBlocked_WhoWorksOnNothing(t *testing.T) {
	slots := func(states ...protocol.SlotState) (out []supervisor.SlotStatus) {
		for i, s := range states {
			out = append(out, supervisor.SlotStatus{Slot: i + 1, State: s})
		}
		return out
	}
	actors := []config.Actor{{Name: "chain", After: []string{"waits"}}, {Name: "waits", After: []string{"failed"}}, {Name: "failed"}, {Name: "half"}, {Name: "stopped"}, {Name: "paused"}, {Name: "new"}}
	running := []supervisor.ActorStatus{
		{Actor: "chain", State: "waiting", Slots: slots("waiting")},
		{Actor: "waits", State: "waiting", Slots: slots("waiting")},
		{Actor: "failed", State: "failed", Slots: slots("failed", "failed")},
		{Actor: "half", State: "failed", Slots: slots("failed", "up")},
		{Actor: "stopped", State: "stopped", Slots: slots("stopped")},
		{Actor: "paused", State: "paused", Slots: slots("idle")},
		{Actor: "new", State: "stopped", Slots: slots("stopped")},
	}
	got := blocked(actors, []mailbox.Actor{{Name: "stopped", Stopped: true}, {Name: "paused", Paused: true}}, running)
	want := map[string]bool{"chain": true, "waits": true, "failed": true, "stopped": true, "paused": true}
	for _, a := range actors {
		if (got[a.Name] != "") != want[a.Name] {
			t.Errorf("%s: %q", a.Name, got[a.Name])
		}
	}
	if allUp(running, got) {
		t.Error("all are up, though one has not begun")
	}
	if !allUp(running[:6], got) {
		t.Error("blocked actors keep READY from being told")
	}
}
