package supervisor_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// J8: a deployment moves the link `current`, and a restart ran the old code. The next
// process has what the links mean then, in its command and in its folder. Resolve
// them when the file is read and this fails.
func TestRestart_FollowsALinkThatMoved(t *testing.T) {
	dir, said := t.TempDir(), newFifo(t)
	for _, version := range []string{"v1", "v2"} {
		program := "#!/bin/sh\necho " + version + " $(basename \"$(pwd -P)\") >\"$SAID\"\nexec sleep 1000\n"
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "program"), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(dir, "current")
	point := func(version string) {
		t.Helper()
		if err := os.Symlink(version, current+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(current+".new", current); err != nil {
			t.Fatal(err)
		}
	}
	point("v1")
	w := run(t, shell("d", config.Daemon, "", func(a *config.Actor) {
		a.Command, a.Cwd = []string{filepath.Join(current, "program")}, current
		a.Env = map[string]string{"SAID": said.path}
	}))
	if got := said.word(); got != "v1 v1" {
		t.Errorf("at first %q", got)
	}
	point("v2")
	w.state("d", "up") // a restart of one that is being started, which can speak by then, is that start
	if err := w.sup.Restart(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if got := said.word(); got != "v2 v2" {
		t.Errorf("after the link has moved %q", got)
	}
}

// G2: one actor writes as fast as it can, through many rotations, while another one
// ends again and again: that is started anew at once, each time, and its lines are
// kept.
func TestNoise_SlowsNobodyElse(t *testing.T) {
	dir, said := t.TempDir(), newFifo(t)
	w := open(t, dir,
		shell("noisy", config.Daemon, `exec yes "a line of no interest to anybody"`, func(a *config.Actor) {
			a.Log.MaxSize, a.Log.Keep = 64<<10, 2
		}),
		shell("d", config.Daemon, `until test -e "$ROTATED"; do sleep 0.01; done; echo up; echo up >"$SAID"; exit 1`, func(a *config.Actor) {
			a.Env = map[string]string{"SAID": said.path, "ROTATED": filepath.Join(dir, "logs", "noisy.1.log.1")}
			a.Backoff = config.Backoff{Initial: time.Millisecond, Max: time.Millisecond, Factor: 1}
			a.Intensity = config.Intensity{Restarts: 19, Within: time.Hour}
		})).run()
	for range 20 {
		said.word()
	}
	w.state("d", "failed")
	w.state("noisy", "up")
	text, err := os.ReadFile(filepath.Join(w.dir, "logs", "d.1.log"))
	if err != nil || len(text) != 20*len("up\n") {
		t.Errorf("%q, %v", text, err)
	}
	if rotated, err := filepath.Glob(filepath.Join(w.dir, "logs", "noisy.1.log*")); err != nil || len(rotated) < 3 {
		t.Errorf("nothing was rotated: %q, %v", rotated, err)
	}
}
