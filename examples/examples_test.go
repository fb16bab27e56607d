// Package examples_test runs every example with a real supervisor, in a copy of
// its folder.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sovereign-run/sovereign/worker/python"
)

// bin holds the program, built once.
var bin string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "sovereign-bin-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	cmd := exec.Command("go", "build", "-o", bin, "../cmd/sovereign")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build sovereign:", err)
		return 1
	}
	return m.Run()
}

// A fleet is a copy of one example.
type fleet struct {
	*testing.T
	folder string
}

func copyOf(t *testing.T, name string) fleet {
	t.Helper()
	folder, err := os.MkdirTemp("", name) // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.CopyFS(folder, os.DirFS(name)); err != nil {
		t.Fatal(err)
	}
	return fleet{t, folder}
}

// command is a command line in the example's folder, the program in its PATH.
func (f fleet) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "sovereign"), args...)
	cmd.Dir = f.folder
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SOVEREIGN_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	return cmd
}

// status runs a command and returns its exit status and what it printed.
func (f fleet) status(args ...string) (code int, stdout, stderr string) {
	f.Helper()
	cmd := f.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			f.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// do runs a command that must succeed, and returns what it printed.
func (f fleet) do(args ...string) string {
	f.Helper()
	code, out, errs := f.status(args...)
	if code != 0 {
		f.Fatalf("sovereign %s: exit status %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// run supervises until the test ends, or until the function that it returns is
// called. It returns once everything is up, which the supervisor tells as it
// would tell systemd.
func (f fleet) run() (stop func()) {
	f.Helper()
	socket := filepath.Join(f.folder, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		f.Fatal(err)
	}
	defer conn.Close()
	cmd := f.command("run", "actors.yaml")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); conn.Close() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			f.Errorf("run: %v", err)
		}
		if f.Failed() {
			f.Logf("run printed:\n%s", log.String())
		}
	}
	f.Cleanup(stop)
	for buffer := make([]byte, 4096); ; {
		n, err := conn.Read(buffer)
		if err != nil {
			f.Fatalf("the supervisor has ended before it was up")
		}
		if slices.Contains(strings.Split(string(buffer[:n]), "\n"), "READY=1") {
			return stop
		}
	}
}

// await follows what a command prints until a line of it is right.
func (f fleet) await(right func(line string) bool, args ...string) {
	f.Helper()
	cmd := f.command(args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if right(lines.Text()) {
			return
		}
	}
	f.Fatalf("sovereign %s ended without it", strings.Join(args, " "))
}

// awaitEvent waits until the journal holds an event of the actor of this kind and
// category.
func (f fleet) awaitEvent(actor, kind, category string) {
	f.Helper()
	f.await(func(line string) bool {
		var e struct{ Kind, Category string }
		return json.Unmarshal([]byte(line), &e) == nil && e.Kind == kind && e.Category == category
	}, "events", "--actor", actor, "--follow", "--json")
}

// A message is what the tests look at of `sovereign inbox show --json`.
type message struct {
	ID, State, Result string
	Receipts          []struct{ Status, Category string }
}

// inbox is every message of an actor.
func (f fleet) inbox(actor string) (all []message) {
	f.Helper()
	var page struct{ Messages []message }
	f.parse(f.do("inbox", actor, "--json"), &page)
	for _, m := range page.Messages {
		f.parse(f.do("inbox", "show", m.ID, "--json"), &m)
		all = append(all, m)
	}
	return all
}

func (f fleet) parse(text string, v any) {
	f.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		f.Fatalf("%v in %s", err, text)
	}
}

func categories(m message) (out []string) {
	for _, r := range m.Receipts {
		out = append(out, r.Category)
	}
	return out
}

// Every example is valid, listed, explained, and small.
func TestExamples_AreValidListedAndSmall(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob("*/actors.yaml")
	if err != nil || len(found) < 5 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, path := range found {
		name := filepath.Dir(path)
		f := copyOf(t, name)
		f.do("check", "actors.yaml")
		if !strings.Contains(string(list), "]("+name+"/README.md)") {
			t.Errorf("README.md does not lead to %s", name)
		}
		if _, err := os.Stat(filepath.Join(name, "README.md")); err != nil {
			t.Error(err)
		}
		files, _ := filepath.Glob(filepath.Join(name, "*"))
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || bytes.Count(text, []byte("\n")) >= 100 {
				t.Errorf("%s: %v, or 100 lines and more", file, err)
			}
		}
	}
}

// Exit 0 completes with stdout; 65 is DEAD at once, with one charged attempt; 75 is
// tried again, uncharged.
func TestTask(t *testing.T) {
	t.Parallel()
	f := copyOf(t, "task")
	f.run()
	if out := f.do("send", "add", "1 2 39", "--wait"); out != "42\n" {
		t.Errorf("1 2 39: %q", out)
	}
	code, _, errs := f.status("send", "add", "one two", "--wait")
	if code != 1 || !strings.Contains(errs, "DEAD") || !strings.Contains(errs, "these are no whole numbers: one two") {
		t.Errorf("one two: exit status %d, %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(f.folder, "closed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(f.do("send", "add", "2 3"))
	f.awaitEvent("add", "released", "deferred")
	if err := os.Remove(filepath.Join(f.folder, "closed")); err != nil {
		t.Fatal(err)
	}
	f.await(func(line string) bool {
		return strings.Contains(line, `"completed"`) && strings.Contains(line, `"`+id+`"`)
	}, "events", "--follow", "--json")
	var m message
	f.parse(f.do("inbox", "show", id, "--json"), &m)
	if got := categories(m); m.State != "DONE" || m.Result != "5\n" || got[0] != "deferred" || got[len(got)-1] != "completed" {
		t.Errorf("after the office has opened: %+v", m)
	}
}

// The attempt that fails after it has sent publishes nothing; the one that
// completes publishes everything, once (P8).
func TestPipeline(t *testing.T) {
	t.Parallel()
	f := copyOf(t, "pipeline")
	stop := f.run()
	f.do("send", "split", "the quick brown fox\njumps over\nthe lazy dog", "--wait")
	stop()
	f.do("run", "actors.yaml", "--drain")
	if got := categories(f.inbox("split")[0]); !slices.Equal(got, []string{"exit_status", "completed"}) {
		t.Errorf("split: %v", got)
	}
	if n := len(f.inbox("count")); n != 3 {
		t.Errorf("count got %d messages", n)
	}
	var results []string
	for _, m := range f.inbox("report") {
		results = append(results, m.Result)
	}
	slices.Sort(results)
	if want := []string{"2 words: jumps over\n", "3 words: the lazy dog\n", "4 words: the quick brown fox\n"}; !slices.Equal(results, want) {
		t.Errorf("report: %q", results)
	}
}

// A worker of a few lines completes and fails; it ends cleanly when told to: on the
// SDK, and by hand.
func TestPythonWorkers(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	for _, name := range []string{"python-worker", "by-hand"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testReverse(t, name) })
	}
}

func testReverse(t *testing.T, name string) {
	f := copyOf(t, name)
	if name == "python-worker" {
		if err := os.WriteFile(filepath.Join(f.folder, "sovereign.py"), []byte(python.SDK), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := f.run()
	if out := f.do("send", "reverse", "größer", "--wait"); out != "reßörg" {
		t.Errorf("größer: %q", out)
	}
	code, _, errs := f.status("send", "reverse", "--wait")
	if code != 1 || !strings.Contains(errs, "there is nothing to turn around") {
		t.Errorf("nothing: exit status %d, %s", code, errs)
	}
	stop()
	if out := f.do("events", "--json"); !strings.Contains(out, "exit status 0") {
		t.Errorf("the worker was not ended in order:\n%s", out)
	}
}

// A worker on the SDK: results, follow-ups, messages that are given up.
func TestGoWorker(t *testing.T) {
	t.Parallel()
	f := copyOf(t, "go-worker")
	cmd := exec.Command("go", "build", "-o", filepath.Join(f.folder, "factor"), "./go-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stop := f.run()
	if out := f.do("send", "factor", "360", "--wait"); out != "360 = 2 × 2 × 2 × 3 × 3 × 5\n" {
		t.Errorf("360: %q", out)
	}
	if code, _, errs := f.status("send", "factor", "many", "--wait"); code != 1 || !strings.Contains(errs, "is no number above 1") {
		t.Errorf("many: exit status %d, %s", code, errs)
	}
	stop()
	if code, out, errs := f.status("run", "actors.yaml", "--drain"); code != 0 {
		t.Errorf("drain: exit status %d\n%s%s", code, out, errs)
	}
	if kept := f.inbox("archive"); len(kept) != 1 || kept[0].Result != "360 = 2 × 2 × 2 × 3 × 3 × 5\n" {
		t.Errorf("archive: %+v", kept)
	}
}

// A step whose worker is killed is parked: nobody but a person has it done again
// (P4.7).
func TestAgents(t *testing.T) {
	t.Parallel()
	f := copyOf(t, "agents")
	pace := func(seconds string) {
		if err := os.WriteFile(filepath.Join(f.folder, "pace"), []byte(seconds), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop := f.run()
	pace("600")
	f.do("send", "planner", "ship release 2", "--wait")
	f.await(func(line string) bool { return strings.Contains(line, "at work: migrate the database") }, "logs", "operator", "--follow")
	f.do("pause", "operator") // the other step waits until this one has been dealt with
	f.do("signal", "operator", "KILL")
	f.awaitEvent("operator", "parked", "worker_lost")
	pace("0")
	f.do("resume", "operator")
	f.awaitEvent("operator", "completed", "completed") // the other step
	stop()
	first := f.inbox("operator")[0]
	if world := f.world(); first.State != "PARKED" || strings.Count(world, "migrate") > 1 || !strings.Contains(world, "ended: switch the traffic") {
		t.Errorf("before a person looked: %s\n%s", first.State, world)
	}
	f.do("inbox", "retry", first.ID)
	f.do("run", "actors.yaml", "--drain")
	if world := f.world(); !strings.Contains(world, "ended: migrate the database") {
		t.Errorf("after the retry:\n%s", world)
	}
	if got := f.inbox("operator")[0]; !slices.Equal(categories(got), []string{"worker_lost", "completed"}) {
		t.Errorf("operator: %+v", got)
	}
	reviews := f.inbox("reviewer")
	if len(reviews) != 2 || reviews[0].Result != "approved, done: switch the traffic\n" || reviews[1].Result != "approved, done: migrate the database\n" {
		t.Errorf("reviewer: %+v", reviews)
	}
}

func (f fleet) world() string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, "world.log"))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}
