package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/config"
)

func durations() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute,
			time.Hour, 24 * time.Hour}).Draw(t, "unit")
		return time.Duration(rapid.Int64Range(0, math.MaxInt64/int64(unit)).Draw(t, "n")) * unit
	})
}

// A duration survives being written and read.
func TestDuration_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := durations().Draw(t, "d")
		text := config.FormatDuration(d)
		if got, err := config.ParseDuration(text); err != nil || got != d {
			t.Fatalf("%d is written %q and read %d, %v", d, text, got, err)
		}
	})
}

// Whatever Go writes for a duration is read, and days add up; a sign and a bare
// number never are.
func TestDuration_ReadsGosWithDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.Int64Range(0, 100_000).Draw(t, "days")
		rest := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "rest"))
		text := rapid.SampledFrom([]string{"", "0"}).Draw(t, "zero") + rest.String()
		want := rest
		if days > 0 {
			text, want = config.FormatDuration(time.Duration(days)*24*time.Hour)+rest.String(), rest+time.Duration(days)*24*time.Hour
		}
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Fatalf("%q: got %v, %v, want %v", text, got, err, want)
		}
		for _, bad := range []string{"-" + text, "+" + text, " " + text, text + " ", text + "x"} {
			if got, err := config.ParseDuration(bad); err == nil {
				t.Fatalf("%q is read as %v", bad, got)
			}
		}
	})
	for text, want := range map[string]string{
		"0": "has no unit", "30": "has no unit", "1.5": "has no unit", "": "is no duration", "d": "is no duration",
		"1.5d": "is no duration", "1h1d": "is no duration", "1d1d": "is no duration", "s": "is no duration",
		"106752d": "is too long", "106751d24h": "is too long", "9223372036854775808ns": "is too long",
		"99999999999999999999d": "is too long", "2562048h": "is too long", "1e3s": "is no duration", ".5s": "is no duration",
	} {
		if _, err := config.ParseDuration(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 36 * time.Hour: "36h",
		10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms",
	} {
		if got := config.FormatDuration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

// A size survives being written and read, and is written in its largest unit.
func TestSize_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int64{1, 1 << 10, 1 << 20, 1 << 30}).Draw(t, "unit")
		n := rapid.Int64Range(0, math.MaxInt64/unit).Draw(t, "n") * unit
		text := config.FormatSize(n)
		if got, err := config.ParseSize(text); err != nil || got != n {
			t.Fatalf("%d is written %q and read %d, %v", n, text, got, err)
		}
		if n > 0 && n%(1<<30) == 0 && !strings.HasSuffix(text, "GiB") {
			t.Fatalf("%d is written %q", n, text)
		}
	})
}

// Any text is read or refused, and what is read is what exact arithmetic says.
func TestSize_NeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{1,22}(B|KiB|MiB|GiB|KB|M|k)?`).Draw(t, "text")
		n, err := config.ParseSize(text)
		if err == nil && n < 0 {
			t.Fatalf("%q is read as %d", text, n)
		}
	})
	for text, want := range map[string]int64{"0B": 0, "1B": 1, "8589934591GiB": 8589934591 << 30, "007KiB": 7 << 10} {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"8589934592GiB": "is too large", "9223372036854775808B": "is too large", "12": "has no unit", "": "is no size",
		"B": "is no size", "1 MiB": "has the unit MiB, did you mean 1MiB?", "1mib": "has the unit mib, did you mean 1MiB?",
		"1.5MiB": "is no whole number", "-1B": "is negative", "1TiB": "is no size", "1b": "is no size",
	} {
		if _, err := config.ParseSize(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// The fast distance is the one that the textbook's recursion gives.
func TestSlips_AreTheEditDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		switch {
		case a == "":
			return len(b)
		case b == "":
			return len(a)
		case a[0] == b[0]:
			return slow(a[1:], b[1:])
		}
		n := 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			n = min(n, 1+slow(a[2:], b[2:]))
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
			return
		}
		if got, want := config.Slips(a, b), min(slow(a, b), 3); got != want {
			t.Fatalf("%q, %q: got %d, want %d", a, b, got, want)
		}
	})
}
