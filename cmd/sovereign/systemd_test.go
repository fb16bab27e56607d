package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

// TestUnit_SystemdTakesIt has systemd read the unit, with a path that holds what is
// special to it. Any word of systemd's is a failure: unknown keys are only printed,
// the exit status stays 0.
func TestUnit_SystemdTakesIt(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("this machine has no systemd")
	}
	dir := filepath.Join(t.TempDir(), "a b%c$d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sovereign")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := config.Parse(filepath.Join(dir, "actors.yaml"), []byte("version: 1\nactors: {a: {command: [cat]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sovereign.service")
	for _, s := range []service{{program: program, file: file}, {program: program, file: file, data: dir + "/data", user: "daemon"},
		{program: program, file: file, own: true}} {
		text := s.unit()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		manager := "--system"
		if s.own {
			manager = "--user"
		}
		cmd := exec.Command(analyze, "verify", manager, "--man=no", path)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze: %v\n%s\n%s", err, out, text)
		}
	}
}

// TestUnit_TimeoutsFitTheActors: a stop takes as long as the longest chain of
// actors that come after each other, and is not cut short.
func TestUnit_TimeoutsFitTheActors(t *testing.T) {
	file, err := config.Parse("/x/actors.yaml", []byte(`version: 1
actors:
  db: {command: [a], mode: daemon, stop: {timeout: 60s}, ready: {tcp: "127.0.0.1:1", timeout: 20s}}
  api: {command: [a], mode: daemon, after: [db], stop: {timeout: 5s}, ready: {tcp: "127.0.0.1:2", timeout: 15s}}
  job: {command: [a], stop: {timeout: 30s}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stopTime(file.Actors), margin+65*time.Second; got != want {
		t.Errorf("stop takes %v, want %v", got, want)
	}
	if got, want := startTime(file.Actors), margin+35*time.Second; got != want {
		t.Errorf("start takes %v, want %v", got, want)
	}
	text := service{program: "/usr/bin/sovereign", file: file}.unit()
	for _, want := range []string{"\nTimeoutStopSec=95\n", "\nTimeoutStartSec=65\n", "\nKillMode=mixed\n", "\nDelegate=yes\n",
		"\nType=notify\n", "\nWatchdogSec=", "\nExecStart=/usr/bin/sovereign run /x/actors.yaml\n", "\nExecReload=/usr/bin/sovereign reload --data /x/.sovereign\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %q\n%s", want, text)
		}
	}
}

// TestUnit_RestartsAfterAnAbort: an aborted Go program ends with the exit status 2,
// as does one that refuses its file. Have the unit prevent a restart for 2, and a
// supervisor that hung stays down.
func TestUnit_RestartsAfterAnAbort(t *testing.T) {
	text := service{program: "/usr/bin/sovereign", file: &config.File{Path: "/x/actors.yaml", Data: "/x/.sovereign"}}.unit()
	if strings.Contains(text, "RestartPreventExitStatus") || !strings.Contains(text, "\nRestart=on-failure\n") {
		t.Error(text)
	}
}

// TestUnit_StoreAndActorsInSystemFolders: what lies in folders that the unit protects
// is excepted, each once, and nothing else.
func TestUnit_StoreAndActorsInSystemFolders(t *testing.T) {
	s := service{program: "/usr/bin/sovereign", file: &config.File{Path: "/etc/jobs/actors.yaml", Data: "/etc/jobs/.sovereign",
		Actors: []config.Actor{{Cwd: "/etc/jobs"}, {Cwd: "/usr/local/a b"}, {Cwd: "/srv"}, {Cwd: "/etcetera"}}}}
	var got []string
	for line := range strings.Lines(s.unit()) {
		if folder, ok := strings.CutPrefix(strings.TrimSpace(line), "ReadWritePaths="); ok {
			got = append(got, folder)
		}
	}
	if want := []string{"/etc/jobs", `"/usr/local/a b"`}; !slices.Equal(got, want) {
		t.Errorf("excepted are %q, want %q", got, want)
	}
	s.own = true
	if text := s.unit(); strings.Contains(text, "Protect") || strings.Contains(text, "ReadWritePaths") {
		t.Errorf("a user's unit asks for what only the system's manager can do without user namespaces:\n%s", text)
	}
}

// TestService_Status: one line for people, which does not change while tasks come and
// go.
func TestService_Status(t *testing.T) {
	actor := func(name string, mode config.Mode, state protocol.SlotState) supervisor.ActorStatus {
		return supervisor.ActorStatus{Actor: name, Mode: mode, State: state}
	}
	for _, c := range []struct {
		actors []supervisor.ActorStatus
		want   string
	}{
		{nil, "0 actors up"},
		{[]supervisor.ActorStatus{actor("a", config.Task, "idle")}, "1 actor up"},
		{[]supervisor.ActorStatus{actor("a", config.Task, "ending"), actor("b", config.Daemon, "exited")}, "2 actors up"},
		{[]supervisor.ActorStatus{actor("a", config.Worker, "failed"), actor("b", config.Daemon, "up")}, "2 actors, 1 up; a failed"},
		{slices.Repeat([]supervisor.ActorStatus{actor("a", config.Daemon, "backoff")}, 7),
			"7 actors, 0 up; a backoff, a backoff, a backoff, a backoff, a backoff, and 2 more"},
	} {
		if got := serviceStatus(c.actors); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
