package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
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
	for _, text := range []string{unit(program, file, "", true, ""), unit(program, file, dir+"/data", false, "daemon")} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput()
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
	text := unit("/usr/bin/sovereign", file, "", true, "")
	for _, want := range []string{"\nTimeoutStopSec=95\n", "\nTimeoutStartSec=65\n", "\nKillMode=mixed\n", "\nDelegate=yes\n",
		"\nType=notify\n", "\nExecStart=/usr/bin/sovereign run /x/actors.yaml\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %q\n%s", want, text)
		}
	}
}
