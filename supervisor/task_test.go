package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// The body is on stdin, stdout is the result, exit 0 completes.
func TestTask_Completes(t *testing.T) {
	w := run(t, shell("echo", config.Task, `printf 'got '; cat`))
	d := w.await(w.send("echo", "hello"))
	if d.State != mailbox.Done || string(d.Result) != "got hello" {
		t.Fatalf("state %s, result %q", d.State, d.Result)
	}
	if len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryCompleted || d.Receipts[0].ExitCode != 0 {
		t.Errorf("receipts %+v", d.Receipts)
	}
}

// Every exit status says what interface.md says.
func TestTask_ExitStatus(t *testing.T) {
	w := run(t, shell("t", config.Task, `read code; echo "last words" >&2; exit $code`,
		func(a *config.Actor) { a.Retry.MaxAttempts = 2 }))
	bad := w.await(w.send("t", "65\n"))
	if bad.State != mailbox.Dead || bad.Receipts[0].Category != mailbox.CategoryBadMessage || len(bad.Receipts) != 1 {
		t.Errorf("exit 65: %s, %+v", bad.State, bad.Receipts)
	}
	failed := w.await(w.send("t", "3\n"))
	if failed.State != mailbox.Dead || len(failed.Receipts) != 2 {
		t.Fatalf("exit 3: %s, %+v", failed.State, failed.Receipts)
	}
	for _, r := range failed.Receipts {
		if r.Category != mailbox.CategoryExitStatus || r.ExitCode != 3 || !r.Counted || !strings.Contains(r.Reason, "last words") {
			t.Errorf("exit 3: %+v", r)
		}
	}
}

// Exit 75 asks to be tried again, and charges nothing.
func TestTask_Defers(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "tried")
	w := run(t, shell("t", config.Task, `test -e "$FLAG" && exit 0; : >"$FLAG"; exit 75`,
		func(a *config.Actor) { a.Env = map[string]string{"FLAG": flag}; a.Retry.MaxAttempts = 1 }))
	d := w.await(w.send("t", ""))
	if d.State != mailbox.Done || len(d.Receipts) != 2 || d.Receipts[0].Category != mailbox.CategoryDeferred || d.Receipts[0].Counted {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
}

// P4.2: a task that dies of a signal which the supervisor did not send is lost,
// with the signal in the receipt; it is dead after max_attempts (P3.9). Report 4.2 #26:
// the message of a child that the system had killed was acknowledged.
func TestTask_KilledIsWorkerLost(t *testing.T) {
	w := run(t, shell("t", config.Task, `echo complete output; kill -KILL $$`, func(a *config.Actor) { a.Retry.MaxAttempts = 3 }))
	d := w.await(w.send("t", ""))
	if d.State != mailbox.Dead || len(d.Receipts) != 3 {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	for _, r := range d.Receipts {
		if r.Category != mailbox.CategoryWorkerLost || r.Signal != "KILL" || r.Status != mailbox.Failed {
			t.Errorf("%+v", r)
		}
	}
	if s := w.sup.Status()[0].Slots[0]; s.State == "failed" {
		t.Error("failed attempts of a task counted for intensity")
	}
}

// A task that takes longer than `timeout` is killed with its tree.
func TestTask_Timeout(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("t", config.Task, `trap "" TERM; sleep 1000 & echo $! >"$PIDS"; wait`, func(a *config.Actor) {
		a.Env = map[string]string{"PIDS": pids.path}
		a.Timeout = 3 * time.Second // the child has to have spoken by then
		a.Retry.MaxAttempts = 1
	}))
	id := w.send("t", "")
	grandchild := pids.pid()
	d := w.await(id)
	if d.State != mailbox.Dead || d.Receipts[0].Category != mailbox.CategoryTimeout {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	if alive(grandchild) {
		t.Error("a part of the tree outlived the receipt")
	}
}

// A task whose stdout has no end is killed once that is larger than result.max_size, and
// one that ends by itself with more is not DONE either: nothing of it is a result, and
// nothing of it stays on the disk. Have take keep what comes, or task take exit 0 for
// done, and this fails.
func TestTask_TooLargeAResultIsNone(t *testing.T) {
	w := run(t, shell("endless", config.Task, `echo no end >&2; cat /dev/zero`, func(a *config.Actor) {
		a.ResultMax, a.Retry.MaxAttempts = 3<<20, 2
	}), shell("quick", config.Task, `head -c 1500 /dev/zero`, func(a *config.Actor) {
		a.ResultMax, a.Retry.MaxAttempts = 1<<10, 1
	}), shell("parks", config.Task, `cat /dev/zero`, func(a *config.Actor) {
		a.ResultMax, a.OnWorkerLost = 2<<20, config.ParkMessage
	}), shell("fits", config.Task, `head -c 1024 /dev/zero`, func(a *config.Actor) { a.ResultMax = 1 << 10 }))
	for _, tc := range []struct {
		actor, why string
		state      mailbox.State
		receipts   int
	}{
		{"endless", "its stdout is larger than 3MiB (result.max_size): no end", mailbox.Dead, 2},
		{"quick", "its stdout is larger than 1KiB (result.max_size)", mailbox.Dead, 1},
		{"parks", "its stdout is larger than 2MiB (result.max_size)", mailbox.Parked, 1},
		{"fits", "", mailbox.Done, 1},
	} {
		d := w.await(w.send(tc.actor, ""))
		if d.State != tc.state || len(d.Receipts) != tc.receipts {
			t.Errorf("%s: %s, %+v", tc.actor, d.State, d.Receipts)
			continue
		}
		for _, r := range d.Receipts {
			if tc.why != "" && (r.Category != mailbox.CategoryResultTooLarge || r.Reason != tc.why || !r.Counted) {
				t.Errorf("%s: %+v", tc.actor, r)
			}
		}
		if tc.why != "" && (len(d.Result) > 0 || d.ResultTruncated) {
			t.Errorf("%s: a result of %d bytes", tc.actor, len(d.Result))
		}
	}
	if kept, _ := filepath.Glob(filepath.Join(w.dir, "runs", "results", "*")); len(kept) > 0 {
		t.Errorf("left on the disk: %q", kept)
	}
	w.event(0, "that it was too large", kind("endless", protocol.EventResultTooLarge))
}

// A result beyond 1 MiB is kept in a file, and the result says so.
func TestTask_LongResult(t *testing.T) {
	w := run(t, shell("t", config.Task, `head -c 3000000 /dev/zero | tr '\0' x`))
	d := w.await(w.send("t", ""))
	if d.State != mailbox.Done || !d.ResultTruncated || len(d.Result) != 1<<20 {
		t.Fatalf("%s, %d bytes, truncated %v", d.State, len(d.Result), d.ResultTruncated)
	}
	_, note, _ := bytes.Cut(d.Result, []byte("[sovereign: cut here; all 3000000 bytes are in "))
	path, _, ok := strings.Cut(string(note), "]")
	if info, err := os.Stat(path); !ok || err != nil || info.Size() != 3000000 {
		t.Errorf("note %q: %v", note, err)
	}
	// The file goes with its message, not only at the next start: leave out
	// OnResultGone and this fails.
	if err := w.box.Drop(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the message is gone, its result is still there: %v", err)
	}
}

// The folder of workspaces and records is removed while the supervisor runs: it is made
// anew by the next start, which is recorded in it. Leave out either MkdirAll and this fails.
func TestTask_FolderIsMadeAnew(t *testing.T) {
	w := run(t, shell("t", config.Task, `cd "$SOVEREIGN_WORKSPACE" && until [ -s ../live/t.1 ]; do :; done`))
	for range 2 {
		if d := w.await(w.send("t", "")); d.State != mailbox.Done {
			t.Fatalf("%+v", d)
		}
		if err := os.RemoveAll(filepath.Join(w.dir, "runs")); err != nil {
			t.Fatal(err)
		}
	}
}

// D2: everything that was written before the exit is kept: stdout as the result,
// stderr in the log.
func TestTask_KeepsAllOutput(t *testing.T) {
	w := run(t, shell("t", config.Task, `seq 20000; seq 20000 >&2`))
	d := w.await(w.send("t", ""))
	if got := bytes.Count(d.Result, []byte("\n")); got != 20000 {
		t.Errorf("%d lines of 20000 in the result", got)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "logs", "t.1.log"))
	if got := bytes.Count(text, []byte("\n")); err != nil || got != 20000 {
		t.Errorf("%d lines of 20000 in the log: %v", got, err)
	}
}

// D1: an exit is seen at once, whoever holds the pipes, and what is left of the
// tree is killed before the result is on record.
func TestTask_GrandchildHoldsThePipe(t *testing.T) {
	w := run(t, shell("t", config.Task, `sleep 1000 & echo $!`))
	d := w.await(w.send("t", ""))
	pid, err := strconv.Atoi(strings.TrimSpace(string(d.Result)))
	if err != nil || alive(pid) {
		t.Errorf("grandchild %d lives: %v", pid, err)
	}
}

// The workspace is empty, the child's own, and gone once the end is durable, by
// workspace.reclaim (P4.6).
func TestTask_Workspace(t *testing.T) {
	for _, c := range []struct {
		policy config.Reclaim
		exit   string
		kept   bool
	}{
		{config.ReclaimAlways, "1", false}, {config.ReclaimOnSuccess, "0", false}, {config.ReclaimOnSuccess, "1", true}, {config.ReclaimNever, "0", true},
	} {
		t.Run(string(c.policy)+c.exit, func(t *testing.T) {
			w := run(t, shell("t", config.Task, `cd "$SOVEREIGN_WORKSPACE" && ls -A | wc -l >&2; stat -c %a . >&2; pwd >&2; mkdir -m 0 locked; touch file; exit `+c.exit,
				func(a *config.Actor) { a.Reclaim = c.policy; a.Retry.MaxAttempts = 1 }))
			w.await(w.send("t", ""))
			w.state("t", "idle")
			if err := w.stop(); err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(filepath.Join(w.dir, "logs", "t.1.log"))
			said := strings.Fields(string(text))
			if len(said) != 3 || said[0] != "0" || said[1] != "700" {
				t.Fatalf("the task saw %q", said)
			}
			if _, err := os.Stat(said[2]); (err == nil) != c.kept {
				t.Errorf("workspace kept: %v, want %v", err == nil, c.kept)
			}
		})
	}
}

// The PATH in which a command is not found is logged once for an actor, whatever its slots
// and however often they try. Have whyNot add it each time, and this fails.
func TestTask_PathIsToldOnce(t *testing.T) {
	w := run(t, shell("broken", config.Worker, "", func(a *config.Actor) {
		a.Command, a.Replicas = []string{"no-such-program"}, 2
		a.Intensity = config.Intensity{Restarts: 2, Within: time.Minute}
	}))
	w.state("broken", "failed")
	text := w.log.String()
	if tries, told := strings.Count(text, "no-such-program: not found in PATH"), strings.Count(text, " path="); tries < 3 || told != 1 {
		t.Errorf("of %d failed starts %d told the PATH", tries, told)
	}
}

// F13: an actor whose command does not exist says so, charges nothing, backs off,
// fails after `intensity`; another is not affected. Report 4.2 #27: a job that was
// taken and never started was marked failed.
func TestTask_SpawnFailed(t *testing.T) {
	broken := shell("broken", config.Task, "", func(a *config.Actor) {
		a.Command = []string{"/nowhere/at-all"}
		a.Intensity = config.Intensity{Restarts: 2, Within: time.Minute}
	})
	w := run(t, broken, shell("good", config.Task, "cat"))
	id := w.send("broken", "x")
	if d := w.await(w.send("good", "fine")); d.State != mailbox.Done {
		t.Errorf("the good one ended as %s", d.State)
	}
	s := w.state("broken", "failed")
	if !strings.Contains(s.Why, "spawn failed: ENOENT: /nowhere/at-all") || !strings.Contains(s.Next, "sovereign reload") || !strings.HasSuffix(s.Next, "then run sovereign start broken") {
		t.Errorf("status %+v", s)
	}
	if got := len(w.all("broken", "spawn_failed")); got != 3 {
		t.Errorf("%d spawns failed, want 3", got)
	}
	d, err := w.box.Show(t.Context(), id)
	if err != nil || d.State != mailbox.New || d.Attempts != 0 || len(d.Receipts) != 0 {
		t.Errorf("the message is %s, %d attempts, %d receipts: %v", d.State, d.Attempts, len(d.Receipts), err)
	}
}

// The environment is that of interface.md, and what is the supervisor's own does
// not reach a child (L6).
func TestTask_Environment(t *testing.T) {
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "SOVEREIGN_DATA", "SOVEREIGN_PROCESS"} {
		t.Setenv(name, "the supervisor's")
	}
	t.Setenv("PLAIN", "inherited")
	w := run(t, shell("t", config.Task, "env", func(a *config.Actor) {
		a.Env = map[string]string{"MODE": "fast $HOME", "PLAIN": "declared", "SOVEREIGN_ACTOR": "a lie"}
	}))
	id := w.send("t", "b")
	env := map[string]string{}
	for line := range strings.Lines(string(w.await(id).Result)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	for name, want := range map[string]string{"MODE": "fast $HOME", "PLAIN": "declared", "SOVEREIGN_ACTOR": "t", "SOVEREIGN_SLOT": "1",
		"SOVEREIGN_MESSAGE_ID": id.String(), "SOVEREIGN_ATTEMPT": "1", "SOVEREIGN_FROM": "tester", "SOVEREIGN_SUBJECT": "subject of b",
		"SOVEREIGN_SOCKET": filepath.Join(w.dir, "worker.sock")} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "SOVEREIGN_DATA", "SOVEREIGN_FD"} {
		if value, ok := env[name]; ok {
			t.Errorf("%s=%q reached the child", name, value)
		}
	}
	if !strings.HasPrefix(env["SOVEREIGN_PROCESS"], "proc_") || len(env["SOVEREIGN_PROCESS"]) != 37 {
		t.Errorf("SOVEREIGN_PROCESS=%q", env["SOVEREIGN_PROCESS"])
	}
	for _, name := range []string{"SOVEREIGN_LEASE_TOKEN", "SOVEREIGN_CLAIM_TOKEN"} {
		if n, err := strconv.ParseUint(env[name], 10, 53); err != nil || n == 0 {
			t.Errorf("%s=%q", name, env[name])
		}
	}
	if _, err := time.Parse(time.RFC3339, env["SOVEREIGN_LEASE_EXPIRES"]); err != nil {
		t.Errorf("SOVEREIGN_LEASE_EXPIRES: %v", err)
	}
}

// The body reaches stdin whole, whatever its size and bytes, and a task need not
// read it.
func TestTask_Body(t *testing.T) {
	w := run(t, shell("copy", config.Task, "cat"), shell("deaf", config.Task, "true"))
	body := strings.Repeat("\x00\xff line\n", 60000)
	if d := w.await(w.send("copy", body)); string(d.Result) != body {
		t.Errorf("%d bytes came back of %d", len(d.Result), len(body))
	}
	if d := w.await(w.send("deaf", body)); d.State != mailbox.Done {
		t.Errorf("the deaf one ended as %s", d.State)
	}
	if d := w.await(w.send("copy", "")); d.State != mailbox.Done || len(d.Result) != 0 {
		t.Errorf("an empty body came back as %q", d.Result)
	}
}

// A stop interrupts a task: exit 0 within stop.timeout completes, another end is
// interrupted, not charged, and the message waits.
func TestTask_Stop(t *testing.T) {
	for _, c := range []struct {
		name, script string
		timeout      time.Duration // of the stop
		state        mailbox.State
		category     mailbox.Category
	}{
		{"finishes", `trap 'echo bye; exit 0' TERM; echo up >"$UP"; sleep 1000 & wait`, patience, mailbox.Done, mailbox.CategoryCompleted},
		{"gives up", `trap 'exit 7' TERM; echo up >"$UP"; sleep 1000 & wait`, patience, mailbox.New, mailbox.CategoryInterrupted},
		{"ignores it", `trap '' TERM; echo up >"$UP"; sleep 1000`, 300 * time.Millisecond, mailbox.New, mailbox.CategoryInterrupted},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := newFifo(t)
			w := run(t, shell("t", config.Task, c.script, func(a *config.Actor) {
				a.Env = map[string]string{"UP": up.path}
				a.Stop.Timeout = c.timeout
			}))
			id := w.send("t", "")
			up.word()
			if err := w.sup.Stop(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
			d, err := w.box.Show(t.Context(), id)
			if err != nil || d.State != c.state || len(d.Receipts) != 1 || d.Receipts[0].Category != c.category || d.Attempts != len(d.Receipts)-1 && c.state == mailbox.New {
				t.Fatalf("%s, %d attempts, %+v, %v", d.State, d.Attempts, d.Receipts, err)
			}
			if s := w.sup.Status()[0].Slots[0]; s.State != "stopped" || s.PID != 0 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// A cancelled task is killed with its tree; its message is dead.
func TestTask_Cancel(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("t", config.Task, `trap "" TERM; sleep 1000 & echo $! >"$PIDS"; wait`,
		func(a *config.Actor) { a.Env = map[string]string{"PIDS": pids.path} }))
	id := w.send("t", "")
	grandchild := pids.pid()
	d, err := w.cancelMessage(t.Context(), id)
	if err != nil || d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryCancelled {
		t.Fatalf("%s, %+v, %v", d.State, d.Receipts, err)
	}
	if alive(grandchild) {
		t.Error("a part of the tree outlived the receipt")
	}
	w.state("t", "idle")
	if d, err := w.cancelMessage(t.Context(), w.pausedSend("t")); err != nil || d.State != mailbox.Dead {
		t.Errorf("a waiting message: %s, %v", d.State, err)
	}
}

// pausedSend sends a message that nobody is handed.
func (w *world) pausedSend(to string) mailbox.ID {
	w.t.Helper()
	if err := w.sup.Pause(w.t.Context(), to); err != nil {
		w.t.Fatal(err)
	}
	return w.send(to, "")
}

// Cancelling a message at any moment of its start ends it: never forgotten between
// the claim and the process.
func TestTask_CancelAtAnyMoment(t *testing.T) {
	w := run(t, shell("t", config.Task, `sleep 1000`, func(a *config.Actor) { a.Replicas = 4 }))
	for range 30 {
		id := w.send("t", "")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		d, err := w.cancelMessage(ctx, id)
		cancel()
		if err != nil || d.State != mailbox.Dead {
			t.Fatalf("%s is %s: %v", id, d.State, err)
		}
	}
}

// Replicas share the inbox; every message is done once.
func TestTask_Replicas(t *testing.T) {
	w := run(t, shell("t", config.Task, "cat", func(a *config.Actor) { a.Replicas = 4 }))
	var ids []mailbox.ID
	for n := range 60 {
		ids = append(ids, w.send("t", strconv.Itoa(n)))
	}
	for n, id := range ids {
		if d := w.await(id); d.State != mailbox.Done || string(d.Result) != strconv.Itoa(n) || len(d.Receipts) != 1 {
			t.Errorf("%s: %s, %q, %d receipts", id, d.State, d.Result, len(d.Receipts))
		}
	}
}
