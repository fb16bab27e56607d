package supervisor

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// L6: nothing that is reserved comes through, everything else does, in order.
func TestInherited(t *testing.T) {
	got := inherited([]string{"PATH=/bin", "NOTIFY_SOCKET=/run/x", "WATCHDOG_PID=1", "LISTEN_FDS=3", "SOVEREIGN_PROCESS=proc_x",
		"NOTIFY_SOCKETS=kept", "EMPTY=", "odd"})
	if want := []string{"PATH=/bin", "NOTIFY_SOCKETS=kept", "EMPTY=", "odd"}; !slices.Equal(got, want) {
		t.Errorf("inherited = %q, want %q", got, want)
	}
}

// Each name is there once, with the last value, and neither list is changed.
func TestOverlay(t *testing.T) {
	pair := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "name") + "=" + rapid.StringN(0, 4, -1).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		base, over := rapid.SliceOfN(pair, 0, 6).Draw(t, "base"), rapid.SliceOfN(pair, 0, 6).Draw(t, "over")
		before := slices.Clone(base)
		got := overlay(base, over...)
		last := map[string]string{}
		for _, kv := range slices.Concat(base, over) {
			name, _, _ := strings.Cut(kv, "=")
			last[name] = kv
		}
		if len(got) != len(last) || !slices.Equal(base, before) {
			t.Fatalf("overlay(%q, %q) = %q", base, over, got)
		}
		for _, kv := range got {
			if name, _, _ := strings.Cut(kv, "="); last[name] != kv {
				t.Fatalf("overlay(%q, %q) = %q", base, over, got)
			}
		}
	})
}
