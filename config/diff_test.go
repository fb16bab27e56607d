package config_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/config"
)

// base is a file of one actor in each mode, with keys of every kind.
const base = `
version: 1
actors:
  t: {command: cat, env: {A: "1", B: "2"}, timeout: 5m}
  w: {command: [run, it], mode: worker, watchdog: 10s, ready: {exec: "true"}, after: [d]}
  d: {command: serve, mode: daemon, limits: {nofile: 100}, log: {keep: 2}}
`

func parse(t testing.TB, text string) []config.Actor {
	t.Helper()
	file, err := config.Parse("/d/actors.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return file.Actors
}

// J7: what differs is told by key, and whether a process has to be another one for it.
func TestCompare_ByKey(t *testing.T) {
	for _, c := range []struct {
		actor    int
		old, new string
		keys     string
		process  bool
	}{
		{0, "", "", "", false},
		{0, "cat", "[/bin/sh, -c, cat]", "", false},
		{0, "cat", "tac", "command", true},
		{0, `A: "1"`, `A: "9"`, "env.A", true},
		{0, `A: "1", B: "2"`, `B: "2", C: "3"`, "env.A env.C", true},
		{0, "timeout: 5m", "timeout: 300s", "", false},
		{0, "timeout: 5m", "timeout: 6m", "timeout", false},
		{0, "timeout: 5m", "replicas: 2", "replicas timeout", false},
		{0, "timeout: 5m", "timeout: 5m, retry: {max_attempts: 9, jitter: 0}, on_worker_lost: park", "retry.max_attempts retry.jitter on_worker_lost", false},
		{0, "timeout: 5m", "timeout: 5m, workspace: {reclaim: never}", "workspace.reclaim", false},
		{0, "timeout: 5m", "mode: worker", "mode timeout", true},
		{1, "watchdog: 10s", "watchdog: 11s", "watchdog", false},
		{1, "watchdog: 10s, ready: {exec: \"true\"}", "watchdog: 11s, ready: {notify: true}", "ready.notify ready.exec watchdog", true},
		{1, "exec: \"true\"", "tcp: \"h:1\"", "ready.exec ready.tcp", true},
		{1, "exec: \"true\"", "exec: \"true\", timeout: 1m", "ready.timeout", false},
		{1, "ready: {exec: \"true\"}, ", "", "ready", true},
		{1, "after: [d]", "after: [t, d]", "after", false},
		{1, "watchdog: 10s", "backoff: {max: 1m}, intensity: {restarts: 1}, restart: never, stop: {signal: INT}", "restart backoff.max intensity.restarts stop.signal watchdog", false},
		{2, "nofile: 100", "nofile: 101, memory: 1MiB", "limits.nofile limits.memory", true},
		{2, "keep: 2", "keep: 3, max_size: 1MiB", "log.max_size log.keep", false},
		{2, "keep: 2", "file: false, keep: 2", "log.file", true},
		{2, "serve", "serve, cwd: sub, umask: \"077\", user: nobody, group: nogroup", "cwd user group umask", true},
		{2, "serve", "serve, retention: {events: 1d}, lease: {ttl: 5s}", "lease.ttl retention.events", false},
	} {
		old, now := parse(t, base), parse(t, strings.Replace(base, c.old, c.new, 1))
		for i := range old {
			d := config.Compare(&old[i], &now[i])
			want, process := "", false
			if i == c.actor {
				want, process = c.keys, c.process
			}
			if got := strings.Join(d.Keys, " "); got != want || d.Process != process {
				t.Errorf("%q for %q: of %s differ %q (process %v), want %q (%v)", c.new, c.old, now[i].Name, got, d.Process, want, process)
			}
		}
	}
}

// No field of an actor can change unseen: each, changed alone, makes a difference. Add a
// field without a key, and this fails.
func TestCompare_SeesEveryField(t *testing.T) {
	for i, a := range parse(t, base) {
		var visit func(v reflect.Value, path string)
		visit = func(v reflect.Value, path string) {
			switch v.Kind() {
			case reflect.Struct:
				for n := range v.NumField() {
					visit(v.Field(n), path+"."+v.Type().Field(n).Name)
				}
				return
			case reflect.Pointer:
				if !v.IsNil() {
					visit(v.Elem(), path)
				}
				return
			}
			other := parse(t, base)[i]
			changeAt(t, reflect.ValueOf(&other).Elem(), strings.Split(path, ".")[1:])
			if d := config.Compare(&a, &other); !d.Any() && applies(a.Mode, path) {
				t.Errorf("%s%s changes unseen", a.Name, path)
			}
		}
		visit(reflect.ValueOf(a), "")
	}
}

// applies reports whether a field means something in a mode; it is zero otherwise.
func applies(mode config.Mode, path string) bool {
	switch strings.Split(path, ".")[1] {
	case "Name":
		return false
	case "Restart", "Ready":
		return mode != config.Task
	case "Watchdog", "Claim":
		return mode == config.Worker
	case "Timeout", "ProgressTimeout", "Retry", "OnWorkerLost", "Inbox":
		return mode != config.Daemon
	case "Reclaim", "ResultMax":
		return mode == config.Task
	case "Retention":
		return mode != config.Daemon || strings.HasSuffix(path, ".Events")
	}
	return true
}

// changeAt gives the field at path another value.
func changeAt(t *testing.T, v reflect.Value, path []string) {
	for _, name := range path {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		v = v.FieldByName(name)
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 7)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 7)
	case reflect.Float64:
		v.SetFloat(v.Float() + 7)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.ValueOf([]string{"other"}))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"OTHER": "x"}))
	default:
		t.Fatalf("a field of kind %s", v.Kind())
	}
}

// An actor does not differ from itself; what differs one way differs the other way; and
// comparing changes neither.
func TestCompare_IsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) config.Actor {
			mode := rapid.SampledFrom([]config.Mode{config.Task, config.Worker, config.Daemon}).Draw(t, "mode")
			text := fmt.Sprintf("version: 1\nactors:\n  a: {command: c%d, mode: %s, replicas: %d, env: {X%d: \"1\"}", rapid.IntRange(0, 1).Draw(t, "command"),
				mode, rapid.IntRange(1, 2).Draw(t, "replicas"), rapid.IntRange(0, 1).Draw(t, "env"))
			if mode != config.Task && rapid.Bool().Draw(t, "ready") {
				text += ", ready: {tcp: \"h:1\"}"
			}
			file, err := config.Parse("/d/actors.yaml", []byte(text+"}\n"))
			if err != nil {
				t.Fatal(err)
			}
			return file.Actors[0]
		})
		a, b := one.Draw(t, "a"), one.Draw(t, "b")
		before := fmt.Sprintf("%+v %+v", a, b)
		d, back := config.Compare(&a, &b), config.Compare(&b, &a)
		if !slices.Equal(d.Keys, back.Keys) || d.Process != back.Process {
			t.Fatalf("%+v one way, %+v the other", d, back)
		}
		if d.Any() == reflect.DeepEqual(a, b) {
			t.Fatalf("%+v\n%+v\ndiffer by %v", a, b, d.Keys)
		}
		if config.Compare(&a, &a).Any() || fmt.Sprintf("%+v %+v", a, b) != before {
			t.Fatal("an actor differs from itself, or has been changed")
		}
	})
}
