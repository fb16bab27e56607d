package python_test

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

var bin string // the program's folder

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "sovereign-bin-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	cmd := exec.Command("go", "build", "-o", bin, "../../cmd/sovereign")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build sovereign:", err)
		return 1
	}
	return m.Run()
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("no " + program + " here")
	}
}

// The SDK's own tests: against a supervisor's end that they play.
func TestSDK_Unit(t *testing.T) {
	needs(t, "python3")
	t.Parallel()
	cmd := exec.Command("python3", "-B", "-m", "unittest", "test_sovereign")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The annotations hold, for the oldest Python that the SDK is for.
func TestSDK_Types(t *testing.T) {
	needs(t, "mypy")
	t.Parallel()
	cmd := exec.Command("mypy", "--strict", "--python-version", "3.9", "--cache-dir", t.TempDir(), "sovereign.py", "test_sovereign.py")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A fleet of workers in Python under a real supervisor.
type fleet struct {
	*testing.T
	folder string
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	needs(t, "python3")
	folder, err := os.MkdirTemp("", "py") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	err = os.CopyFS(folder, os.DirFS("testdata"))
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "sovereign.py"), []byte(python.SDK), 0o600),
		syscall.Mkfifo(filepath.Join(folder, "go"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f := fleet{t, folder}
	f.run()
	f.do("", "pause", "next")
	return f
}

// as is the same fleet in a subtest.
func (f fleet) as(t *testing.T) fleet { return fleet{t, f.folder} }

func (f fleet) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "sovereign"), args...)
	cmd.Dir = f.folder
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SOVEREIGN_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// run supervises until the test ends; it returns once everything is up.
func (f fleet) run() {
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
	f.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			f.Errorf("run: %v", err)
		}
		if f.Failed() {
			f.Logf("run printed:\n%s", log.String())
		}
	})
	for buffer := make([]byte, 4096); ; {
		n, err := conn.Read(buffer)
		if err != nil {
			f.Fatalf("the supervisor has ended before it was up")
		}
		if slices.Contains(strings.Split(string(buffer[:n]), "\n"), "READY=1") {
			return
		}
	}
}

// do runs a command with this input, which must succeed, and returns what it printed.
func (f fleet) do(input string, args ...string) string {
	f.Helper()
	cmd := f.command(args...)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &errs
	out, err := cmd.Output()
	if err != nil {
		f.Fatalf("sovereign %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// send sends a message whose subject is what its worker is to do, and returns its id.
func (f fleet) send(actor, command string) string {
	f.Helper()
	return strings.TrimSpace(f.do("", "send", actor, "", "--subject", command))
}

// await follows what a command prints until a line of it holds all the words.
func (f fleet) await(args []string, words ...string) {
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
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lines.Text(), w) }) {
			return
		}
	}
	f.Fatalf("sovereign %s ended without %q", strings.Join(args, " "), words)
}

func (f fleet) awaitLog(actor string, words ...string) {
	f.Helper()
	f.await([]string{"logs", actor, "--follow"}, words...)
}

func (f fleet) awaitEvent(actor string, words ...string) {
	f.Helper()
	f.await([]string{"events", "--actor", actor, "--follow", "--json"}, words...)
}

// goOn has a worker that waits for the pipe go on.
func (f fleet) goOn() {
	f.Helper()
	pipe, err := os.OpenFile(filepath.Join(f.folder, "go"), os.O_WRONLY, 0)
	if err != nil {
		f.Fatal(err)
	}
	_ = pipe.Close()
}

// ended is a message in the form "STATE result: how each attempt ended".
func (f fleet) ended(id string) string {
	f.Helper()
	var m struct {
		State, Result string
		Receipts      []struct{ Category string }
	}
	if err := json.Unmarshal([]byte(f.do("", "inbox", "show", id, "--json")), &m); err != nil {
		f.Fatal(err)
	}
	var how []string
	for _, r := range m.Receipts {
		how = append(how, r.Category)
	}
	return m.State + " " + m.Result + ": " + strings.Join(how, ", ")
}

// visible is the bodies of the messages for next.
func (f fleet) visible() (bodies []string) {
	f.Helper()
	var page struct{ Messages []struct{ ID string } }
	if err := json.Unmarshal([]byte(f.do("", "inbox", "next", "--limit", "1000", "--json")), &page); err != nil {
		f.Fatal(err)
	}
	for _, m := range page.Messages {
		var shown struct{ Body string }
		if err := json.Unmarshal([]byte(f.do("", "inbox", "show", m.ID, "--json")), &shown); err != nil {
			f.Fatal(err)
		}
		bodies = append(bodies, shown.Body)
	}
	return bodies
}

func (f fleet) want(got, want string) {
	f.Helper()
	if got != want {
		f.Errorf("got %q, want %q", got, want)
	}
}

// Each of these would fail with a worker that settled by guess.
func TestSDK_UnderARealSupervisor(t *testing.T) {
	t.Parallel()
	all := newFleet(t)
	each := func(name string, test func(f fleet)) {
		t.Run(name, func(t *testing.T) { test(all.as(t)) })
	}
	long := all.send("long", "long") // it takes its time while the others run
	// Any bytes go both ways, over the channel and over worker.sock.
	each("bodies", func(f fleet) {
		for _, actor := range []string{"steady", "apart"} {
			for _, body := range []string{"", "größer\n\u2028", "\xff\x00\xfe", strings.Repeat("\x00", 1<<20)} {
				if got := f.do(body, "send", actor, "-", "--subject", "echo", "--wait"); got != body {
					f.Errorf("%s: %d bytes came back as %d", actor, len(body), len(got))
				}
			}
		}
	})
	// A kill -9 in the middle: the attempt is lost, what it had sent is never seen, and
	// the message is done by the next process (P4.2, P8).
	each("kill", func(f fleet) {
		id := f.send("steady", "die")
		f.awaitLog("steady", "held "+id)
		if seen := f.visible(); len(seen) != 0 {
			f.Errorf("visible before the completion: %q", seen)
		}
		f.do("", "signal", "steady", "KILL")
		f.awaitEvent("steady", `"completed"`, `"`+id+`"`)
		f.want(f.ended(id), "DONE attempt 2: worker_lost, completed")
		f.want(strings.Join(f.visible(), ","), "attempt 2")
	})
	// A stop: what is at hand is finished, nothing more is claimed, exit status 0.
	each("drain", func(f fleet) {
		id := f.send("steady", "slow")
		f.awaitLog("steady", "held "+id)
		stop := f.command("stop", "steady") // waits until it has stopped
		if err := stop.Start(); err != nil {
			f.Fatal(err)
		}
		f.awaitLog("steady", "draining")
		after := f.send("steady", "after")
		f.goOn()
		if err := stop.Wait(); err != nil {
			f.Errorf("stop: %v", err)
		}
		f.awaitEvent("steady", "exit status 0 (stop)")
		f.want(f.ended(id), "DONE drains: True: completed")
		f.want(f.ended(after), "NEW : ")
		f.do("", "start", "steady")
		f.awaitEvent("steady", `"completed"`, `"`+after+`"`)
	})
	// A person cancels: the worker sees it, lets go, and is not killed for it.
	each("cancel", func(f fleet) {
		exits := func() int { return strings.Count(f.do("", "events", "--actor", "steady", "--json"), `"exited"`) }
		before := exits()
		id := f.send("steady", "wait")
		f.awaitLog("steady", "held "+id)
		f.do("", "inbox", "cancel", id)
		f.awaitLog("steady", "lost: cancelled")
		f.want(f.do("", "send", "steady", "", "--subject", "alive", "--wait"), "alive")
		f.want(f.ended(id), "DEAD : cancelled")
		if exits() != before {
			f.Error("the worker was killed for it")
		}
	})
	// Frozen beyond its claim's time: the late completion is refused, and the next
	// attempt's counts (P2.5).
	each("expired", func(f fleet) {
		id := f.send("brief", "late")
		f.awaitLog("brief", "held "+id)
		f.do("", "signal", "brief", "STOP")
		f.awaitEvent("brief", "claim_expired", `"`+id+`"`)
		f.do("", "signal", "brief", "CONT")
		f.goOn()
		f.awaitLog("brief", "refused: ")
		f.awaitEvent("brief", `"completed"`, `"`+id+`"`)
		f.want(f.ended(id), "DONE late: claim_expired, completed")
	})
	// Two processes with four threads each: every message once, and what each sends.
	each("many", func(f fleet) {
		before := len(f.visible())
		var ids []string
		for i := range 20 {
			ids = append(ids, strings.TrimSpace(f.do("", "send", "many", fmt.Sprint("copy ", i), "--subject", "copy")))
		}
		for _, id := range ids {
			f.awaitEvent("many", `"completed"`, `"`+id+`"`)
		}
		seen := f.visible()[before:]
		slices.Sort(seen)
		if n := len(seen); n != 20 || len(slices.Compact(seen)) != 20 {
			f.Errorf("%d copies, want 20 different ones: %q", n, seen)
		}
	})
	// An exception fails the attempt, and its type and text are the reason.
	each("fail", func(f fleet) {
		id := f.send("steady", "fail")
		f.awaitEvent("steady", `"dead"`, `"`+id+`"`)
		f.want(f.ended(id), "DEAD : failed_by_worker, failed_by_worker, failed_by_worker")
		if shown := f.do("", "inbox", "show", id); !strings.Contains(shown, "ValueError: as it should") {
			f.Errorf("no reason in:\n%s", shown)
		}
	})
	// A task: stdout is the result; what it sends is seen when it completes, else never.
	each("task", func(f fleet) {
		before := len(f.visible())
		f.want(f.do("", "send", "task", "größer", "--wait"), "GRÖSSER 1")
		bad := strings.TrimSpace(f.do("", "send", "task", "bad"))
		f.awaitEvent("task", `"dead"`, `"`+bad+`"`)
		f.want(f.ended(bad), "DEAD : bad_message")
		later := strings.TrimSpace(f.do("", "send", "task", "later"))
		f.awaitEvent("task", `"completed"`, `"`+later+`"`)
		f.want(f.ended(later), "DONE LATER 2: deferred, completed")
		f.want(strings.Join(f.visible()[before:], ","), "größer,later")
	})
	// A call brings the result of another actor's work.
	each("call", func(f fleet) {
		f.want(f.do("asked", "send", "steady", "-", "--subject", "call", "--wait"), "ASKED 1")
	})
	// Renewals keep a claim for several times its ttl of 5 s.
	each("heartbeat", func(f fleet) {
		f.awaitEvent("long", `"completed"`, `"`+long+`"`)
		f.want(f.ended(long), "DONE held all the time: completed")
	})
}
