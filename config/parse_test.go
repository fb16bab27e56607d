package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/refusal"
)

func mustGetwd(t *testing.T) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return wd
}

func mustParse(t *testing.T, path, text string) *config.File {
	t.Helper()
	f, err := config.Parse(path, []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return f
}

// actor is the one named name.
func actor(t *testing.T, f *config.File, name string) config.Actor {
	t.Helper()
	i := slices.IndexFunc(f.Actors, func(a config.Actor) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("no actor %s in %v", name, f.Actors)
	}
	return f.Actors[i]
}

// Every problem is reported, in the order of the file, not in that of the
// checks. Return at the first one, or drop the sort, and this fails.
func TestParse_ReportsEverythingAtOnceInOrder(t *testing.T) {
	const text = `version: 3
daat: x
defaults: {retry: {initial: 10m}}
actors:
  db: {comand: sleep 1, mode: daemon, ready: {tcp: here, notify: true}, after: [x, a]}
  Bad:
    command: &x []
    claim: {}
    env: {SOVEREIGN_A: 1, B: [x]}
  a:
    command: x
    command: y
    after: [db]
    log: {keep: -1, max_size: 10MB}
    replicas: "0"
---
a: 1
`
	want := []string{
		"1:10", "2:1", "3:29", "5:8", "5:52", "5:58", "5:81", "5:84", "6:3", "7:14", "7:14",
		"8:5", "9:11", "9:30", "12:5", "14:17", "14:31", "15:15", "16:1",
	}
	_, err := config.Parse("actors.yaml", []byte(text))
	var got []string
	for line := range strings.Lines(err.Error()) {
		part := strings.SplitN(line, ":", 4)
		got = append(got, part[1]+":"+part[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v\n%v", got, want, err)
	}
}

// A configuration that is refused ends the command line with status 2.
func TestProblems_AreABadRequest(t *testing.T) {
	_, err := config.Parse("x/actors.yaml", []byte("actors: {}"))
	r := refusal.Of(err)
	if r.Category != refusal.BadRequest || r.Retryable {
		t.Errorf("category %s, retryable %v", r.Category, r.Retryable)
	}
	if r.Message != err.Error() || !strings.Contains(r.Next, "sovereign check x/actors.yaml") {
		t.Errorf("message %q, next %q", r.Message, r.Next)
	}
	list, ok := errors.AsType[*config.Problems](err)
	want := config.Problem{Path: "x/actors.yaml", Line: 1, Column: 9,
		Message: "actors is empty, allowed: a mapping with at least one actor"}
	if !ok || len(list.List) != 1 || list.List[0] != want {
		t.Errorf("got %+v, want %+v", list, want)
	}
}

// J1: nothing is expanded, in no place and in no kind of quotes.
func TestParse_ExpandsNothing(t *testing.T) {
	t.Setenv("HOME", "/expanded")
	f := mustParse(t, "/d/actors.yaml", `data: $HOME/data
actors:
  text: {command: "echo $HOME '$1' $$ ~ %i {{x}}"}
  list:
    command: [$HOME/x, "${HOME}", '$1', $$, ~, "~/x", '*']
    cwd: ~/work
    env: {A: $HOME, B: "${HOME}", C: '$$', D: ~, E: ~/x, F: "%n"}
`)
	want := []string{"/bin/sh", "-c", "echo $HOME '$1' $$ ~ %i {{x}}"}
	if got := actor(t, f, "text").Command; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	list := actor(t, f, "list")
	if want := []string{"$HOME/x", "${HOME}", "$1", "$$", "~", "~/x", "*"}; !slices.Equal(list.Command, want) {
		t.Errorf("got %q, want %q", list.Command, want)
	}
	env := map[string]string{"A": "$HOME", "B": "${HOME}", "C": "$$", "D": "~", "E": "~/x", "F": "%n"}
	if !maps.Equal(list.Env, env) {
		t.Errorf("got %q, want %q", list.Env, env)
	}
	if f.Data != "/d/$HOME/data" || list.Cwd != "/d/~/work" {
		t.Errorf("data %q, cwd %q", f.Data, list.Cwd)
	}
}

// J3: a list is executed as it is, and a text whole by the shell; neither is
// split or cut by us.
func TestParse_LeavesCommandsWhole(t *testing.T) {
	f := mustParse(t, "/d/actors.yaml", `actors:
  text: {command: sh -c "a ; b" # not this}
  }
  list: {command: [sh, -c, "a ; b", "", 'it''s', "a\tb"]}
  block:
    command: |
      set -e
      ./x "one
      two" ; ./y
`)
	for name, want := range map[string][]string{
		"text":  {"/bin/sh", "-c", `sh -c "a ; b"`},
		"list":  {"sh", "-c", "a ; b", "", "it's", "a\tb"},
		"block": {"/bin/sh", "-c", "set -e\n./x \"one\ntwo\" ; ./y\n"},
	} {
		if got := actor(t, f, name).Command; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// J4: the source text of a scalar reaches the child, whatever YAML takes it
// for. Read nodes by their tags and this fails.
func TestParse_KeepsScalarsAsWritten(t *testing.T) {
	want := map[string]string{
		"PORT": "0123", "A": "no", "B": "on", "C": "TRUE", "T": "22:22", "U": "49100:22", "V": "1.10",
		"X": "1e3", "D": "2024-01-01", "H": "0x1F", "O": "0o17", "I": ".inf", "N": "null", "E": "",
		"G": "1_000", "P": "+1", "Q": "0123", "R": "no", "S": "a  b", "Z": "-0", "L": "=",
	}
	f := mustParse(t, "actors.yaml", `actors:
  a:
    command: [x, 0123, no, 22:22, 1.10, 1e3, 2024-01-01, null, ""]
    env:
      PORT: 0123
      A: no
      B: on
      C: TRUE
      T: 22:22
      U: 49100:22
      V: 1.10
      X: 1e3
      D: 2024-01-01
      H: 0x1F
      O: 0o17
      I: .inf
      N: null
      E:
      G: 1_000
      P: +1
      Q: "0123"
      R: 'no'
      S: a  b   # a comment
      Z: -0
      L: =
`)
	a := actor(t, f, "a")
	if !maps.Equal(a.Env, want) {
		for k, v := range want {
			if a.Env[k] != v {
				t.Errorf("%s: got %q, want %q", k, a.Env[k], v)
			}
		}
	}
	argv := []string{"x", "0123", "no", "22:22", "1.10", "1e3", "2024-01-01", "null", ""}
	if !slices.Equal(a.Command, argv) {
		t.Errorf("got %q, want %q", a.Command, argv)
	}
	if b := actor(t, mustParse(t, "a", "actors: {no: {command: 0123, user: 1000}}"), "no"); b.Command[2] != "0123" || b.User != "1000" {
		t.Errorf("got %q, %q", b.Command, b.User)
	}
}

// J10: paths are relative to the folder of the file, not to where the program
// was called from, and a symbolic link stays one (J8).
func TestParse_MakesPathsAbsoluteByTheFile(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"v1", "v2", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("v1", filepath.Join(folder, "current")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(folder, "v1", "x.env"), "A=1\n")
	mustWrite(t, filepath.Join(folder, "v1", "actors.yaml"), `data: state
actors:
  a: {command: [./x], cwd: work/../run, env_file: x.env}
  b: {command: [./x], cwd: /abs}
  c: {command: [bin/x]}
`)
	t.Chdir(filepath.Join(folder, "elsewhere"))
	f, err := config.Load("../current/actors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	current := filepath.Join(folder, "current")
	a, b, c := f.Actors[0], f.Actors[1], f.Actors[2]
	for _, p := range []struct{ what, got, want string }{
		{"file", f.Path, current + "/actors.yaml"},
		{"data", f.Data, current + "/state"},
		{"cwd", a.Cwd, current + "/run"},
		{"env_file", a.EnvFile, current + "/x.env"},
		{"absolute cwd", b.Cwd, "/abs"},
		{"cwd not given", c.Cwd, current},
		{"program", c.Command[0], "bin/x"},
	} {
		if p.got != p.want {
			t.Errorf("%s: got %s, want %s", p.what, p.got, p.want)
		}
	}
}

// Where nothing is given, what the reference shows holds; what makes no sense
// in a mode is zero.
func TestParse_FillsDefaultsByMode(t *testing.T) {
	f := mustParse(t, "/d/actors.yaml", `actors:
  t: {command: x}
  w: {command: x, mode: worker, ready: {notify: true}}
  d: {command: x, mode: daemon}
`)
	base := config.Actor{
		Name: "d", Command: []string{"/bin/sh", "-c", "x"}, Mode: config.Daemon, Replicas: 1, Cwd: "/d", Umask: -1,
		Restart:   config.Always,
		Backoff:   config.Backoff{Initial: 100 * time.Millisecond, Max: 30 * time.Second, Factor: 2, Jitter: 0.2},
		Intensity: config.Intensity{Restarts: 5, Within: time.Minute},
		Stop:      config.Stop{Signal: "TERM", Timeout: 10 * time.Second},
		LeaseTTL:  30 * time.Second,
		Retention: config.Retention{Events: 7 * 24 * time.Hour, EventsCount: 1_000_000},
		Log:       config.Log{File: true, MaxSize: 10 << 20, Keep: 3},
	}
	worker := base
	worker.Name, worker.Mode = "w", config.Worker
	worker.Ready = &config.Ready{Notify: true, Timeout: 30 * time.Second}
	worker.Timeout = 10 * time.Minute
	worker.Claim = config.Claim{TTL: time.Minute, Renew: config.Auto}
	worker.Retry = config.Retry{MaxAttempts: 5,
		Backoff: config.Backoff{Initial: time.Second, Max: 5 * time.Minute, Factor: 2, Jitter: 0.2}}
	worker.OnWorkerLost = config.RetryMessage
	worker.Inbox = config.Inbox{Limit: 100000, MaxBody: 1 << 20}
	worker.Retention.Done, worker.Retention.Dead = 24*time.Hour, 30*24*time.Hour
	worker.Retention.DoneCount, worker.Retention.DeadCount = 100_000, 100_000
	task := worker
	task.Name, task.Mode, task.Ready, task.Restart = "t", config.Task, nil, ""
	task.Reclaim, task.ResultMax = config.ReclaimAlways, 1<<30
	for _, want := range []config.Actor{base, worker, task} {
		if got := actor(t, f, want.Name); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if f.Data != "/d/.sovereign" || f.Path != "/d/actors.yaml" {
		t.Errorf("data %s, path %s", f.Data, f.Path)
	}
	if written := mustParse(t, "/d/actors.yaml", allDefaults); !reflect.DeepEqual(actor(t, written, "t"), func() config.Actor {
		return task
	}()) {
		t.Errorf("written out: got %+v\nwant %+v", actor(t, written, "t"), task)
	}
}

// Every key of the reference reaches its field.
func TestParse_ReadsEveryKey(t *testing.T) {
	f := mustParse(t, "/d/actors.yaml", example)
	want := config.Actor{
		Name: "resize", Command: []string{"./resize.sh", "--fast"}, Mode: config.Task, Replicas: 2, Cwd: "/d/work",
		Env: map[string]string{"MODE": "fast"}, User: "nobody", Group: "nogroup", Umask: 0o077,
		Limits:       config.Limits{NoFile: 1024, Memory: 512 << 20, Pids: 64},
		Backoff:      config.Backoff{Initial: 200 * time.Millisecond, Max: time.Minute, Factor: 1.5},
		Intensity:    config.Intensity{Within: 2 * time.Minute},
		Stop:         config.Stop{Signal: "INT"},
		After:        []string{"db", "mail"},
		LeaseTTL:     15 * time.Second,
		Timeout:      36 * time.Hour,
		Claim:        config.Claim{TTL: time.Minute, Renew: config.Auto},
		Retry:        config.Retry{MaxAttempts: 1, Backoff: config.Backoff{Factor: 1, Jitter: 1}},
		OnWorkerLost: config.ParkMessage,
		Inbox:        config.Inbox{Limit: 10, MaxBody: 4 << 10},
		Retention:    config.Retention{Done: time.Hour, Dead: 40 * 24 * time.Hour, Events: 24 * time.Hour, DoneCount: 7, DeadCount: 8, EventsCount: 9},
		Reclaim:      config.ReclaimOnSuccess,
		ResultMax:    2 << 30,
		Log:          config.Log{MaxSize: 1 << 30},
	}
	if got := actor(t, f, "resize"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	mail := actor(t, f, "mail")
	if mail.Restart != config.OnFailure || mail.Watchdog != 30*time.Second ||
		mail.Claim != (config.Claim{TTL: time.Minute, Renew: config.Manual}) {
		t.Errorf("got %+v", mail)
	}
	if names := []string{f.Actors[0].Name, f.Actors[1].Name, f.Actors[2].Name}; !slices.Equal(names, []string{"db", "mail", "resize"}) {
		t.Errorf("order: %v", names)
	}
}

// A byte order mark and CR LF, as other systems write them, change nothing.
func TestParse_ReadsForeignLineEndings(t *testing.T) {
	foreign := "\ufeff" + strings.ReplaceAll(example, "\n", "\r\n")
	if got, want := mustParse(t, "/d/a", foreign), mustParse(t, "/d/a", example); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A file has room for 1024 actors and not for one more.
func TestParse_BoundsTheActors(t *testing.T) {
	var text strings.Builder
	text.WriteString("actors:\n")
	for i := range 1024 {
		fmt.Fprintf(&text, "  a%d: {command: x}\n", i)
	}
	mustParse(t, "actors.yaml", text.String())
	_, err := config.Parse("actors.yaml", []byte(text.String()+"  b: {command: x}\n"))
	if want := "actors.yaml:1026:3: there are too many actors, allowed: 1024"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
