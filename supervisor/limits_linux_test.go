package supervisor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// limits.memory and limits.pids are kept where a cgroup with these controllers is
// delegated, and refused with the reason where none is. Leave out EnableLimits in
// launch and this fails on both.
func TestLimits(t *testing.T) {
	why := theHost.EnableLimits()
	w := run(t, shell("d", config.Daemon, "exec sleep 1000", func(a *config.Actor) {
		a.Limits = config.Limits{Memory: 64 << 20, Pids: 7}
		a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour
	}))
	if why != nil {
		ev := w.event(0, "refused", kind("d", "spawn_failed"))
		if want := "limits of memory and pids cannot be kept: " + why.Error(); !strings.Contains(ev.Text, want) {
			t.Errorf("it says %q, want %q", ev.Text, want)
		}
		return
	}
	pid := w.state("d", "up").PID
	lines, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := bytes.Cut(lines, []byte("0::"))
	for file, want := range map[string]string{"memory.max": "67108864", "pids.max": "7"} {
		got, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", string(bytes.TrimSpace(path)), file))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, %v", file, got, err)
		}
	}
}
