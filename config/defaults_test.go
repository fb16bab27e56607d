package config_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// The actor's own value wins; mappings are merged key by key, lists are not.
func TestDefaults_YieldToTheActorKeyByKey(t *testing.T) {
	f := mustParse(t, "/d/actors.yaml", `defaults:
  command: [base, 1, 2]
  mode: worker
  replicas: 3
  env: {A: base, B: base}
  retry: {initial: 2s, max: 1h}
  after: [db]
  ready: {tcp: "h:1", timeout: 5s}
actors:
  db: {mode: daemon, after: []}
  all: {}
  own:
    command: own
    replicas: 1
    env: {B: own, C: own}
    retry: {initial: 5s}
    after: [all]
    ready: {notify: true}
`)
	all, own := actor(t, f, "all"), actor(t, f, "own")
	if !slices.Equal(all.Command, []string{"base", "1", "2"}) || all.Mode != config.Worker || all.Replicas != 3 {
		t.Errorf("all: %+v", all)
	}
	if !slices.Equal(own.Command, []string{"/bin/sh", "-c", "own"}) || own.Mode != config.Worker || own.Replicas != 1 {
		t.Errorf("own: %+v", own)
	}
	if want := map[string]string{"A": "base", "B": "own", "C": "own"}; !maps.Equal(own.Env, want) {
		t.Errorf("env: got %v, want %v", own.Env, want)
	}
	if want := map[string]string{"A": "base", "B": "base"}; !maps.Equal(all.Env, want) {
		t.Errorf("env of another: got %v, want %v", all.Env, want)
	}
	if own.Retry.Initial != 5*time.Second || own.Retry.Max != time.Hour || own.Retry.Factor != 2 {
		t.Errorf("retry: %+v", own.Retry)
	}
	if !slices.Equal(own.After, []string{"all"}) || !slices.Equal(all.After, []string{"db"}) {
		t.Errorf("after: %v, %v", own.After, all.After)
	}
	if !reflect.DeepEqual(own.Ready, &config.Ready{Notify: true, Timeout: 5 * time.Second}) {
		t.Errorf("ready: %+v", own.Ready)
	}
	if !reflect.DeepEqual(all.Ready, &config.Ready{TCP: "h:1", Timeout: 5 * time.Second}) {
		t.Errorf("ready: %+v", all.Ready)
	}
}

// What comes from defaults and makes no sense for one actor is left out there.
func TestDefaults_AreLeftOutWhereTheyMakeNoSense(t *testing.T) {
	f := mustParse(t, "/d/actors.yaml", `defaults:
  restart: never
  watchdog: 5s
  claim: {ttl: 7s}
  timeout: 3m
  ready: {notify: true}
  workspace: {reclaim: never}
  retention: {done: 1h, events: 2d}
  after: [d]
actors:
  d: {command: x, mode: daemon}
  n: {command: x, mode: daemon, watchdog: 9s}
  w: {command: x, mode: worker}
  t: {command: x, mode: task}
`)
	d, w, k := actor(t, f, "d"), actor(t, f, "w"), actor(t, f, "t")
	if n := actor(t, f, "n"); n.Watchdog != 9*time.Second {
		t.Errorf("a daemon that shows signs of life by sd_notify has the watchdog %v, not its own", n.Watchdog)
	}
	if d.Watchdog != 0 || d.Timeout != 0 || d.Claim != (config.Claim{}) || d.Reclaim != "" || d.After != nil ||
		d.Retention != (config.Retention{Events: 48 * time.Hour, EventsCount: 1000000}) || d.Restart != config.Never || d.Ready == nil {
		t.Errorf("daemon: %+v", d)
	}
	if w.Watchdog != 5*time.Second || w.Claim.TTL != 7*time.Second || w.Timeout != 3*time.Minute || w.Reclaim != "" ||
		!slices.Equal(w.After, []string{"d"}) {
		t.Errorf("worker: %+v", w)
	}
	if k.Watchdog != 0 || k.Ready != nil || k.Restart != "" || k.Reclaim != config.ReclaimNever ||
		k.Claim != (config.Claim{TTL: time.Minute, Renew: config.Auto}) {
		t.Errorf("task: %+v", k)
	}
}
