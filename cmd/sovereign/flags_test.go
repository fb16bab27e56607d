package main

import (
	"testing"
	"time"
	_ "time/tzdata" // whatever the machine has
)

// A time of day is the next at which clocks show it, over changes of summer time too. Have
// nextClock take what time.Date makes of it, and this fails.
func TestNextClock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ now, text, want string }{
		{"2026-03-01T12:00:00+01:00", "18:00", "2026-03-01T18:00:00+01:00"},
		{"2026-03-01T18:00:00+01:00", "18:00", "2026-03-02T18:00:00+01:00"}, // now is over
		{"2026-03-01T17:59:59+01:00", "8:05:30", "2026-03-02T08:05:30+01:00"},
		{"2026-12-31T23:00:00+01:00", "00:00", "2027-01-01T00:00:00+01:00"},
		{"2026-03-28T12:00:00+01:00", "02:30", "2026-03-30T02:30:00+02:00"}, // skipped on the 29th
		{"2026-03-28T12:00:00+01:00", "03:00", "2026-03-29T03:00:00+02:00"},
		{"2026-10-24T12:00:00+02:00", "02:30", "2026-10-25T02:30:00+02:00"}, // comes twice
		{"2026-10-25T02:30:00+02:00", "02:30", "2026-10-25T02:30:00+01:00"},
		{"2026-10-25T02:30:00+01:00", "02:30", "2026-10-26T02:30:00+01:00"},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		at, is := nextClock(tc.text, now.In(berlin))
		if got := at.Format(time.RFC3339); !is || got != tc.want {
			t.Errorf("%s at %s is %s, want %s", tc.text, tc.now, got, tc.want)
		}
	}
	for _, text := range []string{"24:00", "18", "18:60", "18:00:00.5", "6pm", "", "18:00Z"} {
		if at, is := nextClock(text, time.Now()); is {
			t.Errorf("%q is %v", text, at)
		}
	}
}
