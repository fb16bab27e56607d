package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/protocol"
)

// demoBinary builds the program that the demonstration starts as its supervisor
// and workers.
func demoBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sovereign")
	args := []string{"build", "-o", binary}
	if demoRace {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// demoCommand runs the demonstration with its folder in a folder of the test.
func demoCommand(t *testing.T, binary string, args ...string) (cmd *exec.Cmd, tmp string) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	cmd = exec.Command(binary, append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "DEMO_TEST="+tmp, "GORACE=atexit_sleep_ms=0")
	return cmd, tmp
}

func TestDemo(t *testing.T) {
	binary := demoBinary(t)
	t.Run("holds and leaves nothing", func(t *testing.T) { t.Parallel(); demoHolds(t, binary) })
	t.Run("tells a story in 80 columns", func(t *testing.T) { t.Parallel(); demoFits(t, binary) })
	for _, moment := range []string{"four orders are sent", "SIGSTOP to", "started again"} {
		t.Run("interrupted when "+moment, func(t *testing.T) { t.Parallel(); demoInterrupted(t, binary, moment) })
	}
}

// The guarantees hold with real processes, kills and freezes, and nothing is left
// behind: P2.5, P4.1, P4.2, P4.9, P8.
func demoHolds(t *testing.T, binary string) {
	cmd, tmp := demoCommand(t, binary, "--json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo: %v\n%s%s", err, out, stderr.String())
	}
	var v demoVerdict
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !v.OK || len(v.Messages) != 18 || len(v.Refused) == 0 {
		t.Errorf("verdict: %s", out)
	}
	assertNothingLeft(t, tmp)
}

// What people read fits a terminal, and holds no colour where there is none.
func demoFits(t *testing.T, binary string) {
	cmd, tmp := demoCommand(t, binary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("demo: %v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{"SIGKILL to the supervisor", "is refused: fencing_token_stale", "worker_lost, completed", "claim_expired, completed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if cells(strings.TrimSuffix(line, "\n")) > demoWidth || strings.Contains(line, "\x1b") {
			t.Errorf("does not fit: %q", line)
		}
	}
	assertNothingLeft(t, tmp)
}

// Ctrl-C at any time leaves no process and no folder. Without clear() after an
// interrupted play this fails.
func demoInterrupted(t *testing.T, binary, moment string) {
	cmd, tmp := demoCommand(t, binary)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	interrupted := false
	for lines := bufio.NewScanner(r); lines.Scan(); { // until everybody who had the pipe is gone
		out.WriteString(lines.Text() + "\n")
		if !interrupted && strings.Contains(lines.Text(), moment) {
			interrupted = true
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(out.String(), "was interrupted") {
		t.Errorf("exit status %d\n%s", code, out.String())
	}
	assertNothingLeft(t, tmp)
}

// assertNothingLeft looks for files in tmp and for processes that carry its path
// in their environment. One that is dying of its supervisor's end is waited for.
func assertNothingLeft(t *testing.T, tmp string) {
	t.Helper()
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("DEMO_TEST="+tmp+"\x00")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && !waitGone(pid, testLimit) {
				continue
			}
			t.Errorf("a process is left: %s", path)
		}
	}
}

// soundEvidence is what an undisturbed store would show of one order that was cut
// off in each way.
func soundEvidence() demoEvidence {
	done := func(attempt int, token protocol.Token, process string) protocol.Receipt {
		return protocol.Receipt{Attempt: attempt, Token: token, Process: process, Status: "completed", Category: "completed", ByWorker: true, Counted: true}
	}
	failed := func(attempt int, token protocol.Token, category, signal string) protocol.Receipt {
		return protocol.Receipt{Attempt: attempt, Token: token, Process: "old", Status: "failed", Category: category, Signal: signal, Counted: true}
	}
	message := func(id, to, parent, token string, receipts ...protocol.Receipt) protocol.MessageDetail {
		m := protocol.MessageDetail{Message: protocol.Message{ID: id, To: to, Subject: "order 1", State: "DONE", Attempt: len(receipts)}, Receipts: receipts}
		if parent != "" {
			m.Headers = map[string]string{demoParent: parent, demoToken: token}
		}
		return m
	}
	e := demoEvidence{
		Sent: []string{"m1"},
		Cut:  []demoCut{{"m1", 1, demoKilled}, {"m1", 2, demoOrphaned}, {"m2", 1, demoFrozen}},
		Staged: []demoReport{
			{Message: "m1", Attempt: 1, Staged: "m8"}, {Message: "m1", Attempt: 2, Staged: "m9"}, {Message: "m1", Attempt: 3, Staged: "m2"},
			{Message: "m2", Attempt: 1, Staged: "m7"}, {Message: "m2", Attempt: 2, Staged: "m3"},
		},
		Refused: []demoReport{{Message: "m2", Attempt: 1, Token: 5, Category: "fencing_token_stale"}},
		Messages: []protocol.MessageDetail{
			message("m1", demoPack, "", "", failed(1, 1, "worker_lost", "KILL"), failed(2, 2, "worker_lost", ""), done(3, 4, "a")),
			message("m2", demoLabel, "m1", "4", failed(1, 5, "claim_expired", ""), done(2, 6, "b")),
			message("m3", demoMail, "m2", "6", done(1, 7, "c")),
		},
	}
	for _, m := range e.Messages {
		e.Events = append(e.Events, protocol.Event{Kind: "completed", Message: m.ID})
	}
	return e
}

func TestJudgeDemo_AcceptsSoundEvidence(t *testing.T) {
	if v := judgeDemo(soundEvidence()); !v.OK {
		t.Errorf("%+v", v.Checks)
	}
	if v := judgeDemo(demoEvidence{}); v.OK {
		t.Error("nothing at all is accepted")
	}
}

// Each guarantee can be broken alone, and the verdict says so: an assertion of
// judgeDemo that is removed fails here.
func TestJudgeDemo_RefusesTamperedEvidence(t *testing.T) {
	for name, tamper := range map[string]func(*demoEvidence){
		"an outcome is missing":         func(e *demoEvidence) { e.Messages[0].Receipts = e.Messages[0].Receipts[:2] },
		"two outcomes":                  func(e *demoEvidence) { e.Messages[1].Receipts[0].Status = "completed" },
		"not done":                      func(e *demoEvidence) { e.Messages[2].State = "PARKED" },
		"a message is missing":          func(e *demoEvidence) { e.Messages = e.Messages[:2] },
		"an order is missing":           func(e *demoEvidence) { e.Messages = e.Messages[1:] },
		"a message too many":            func(e *demoEvidence) { e.Messages = append(e.Messages, e.Messages[2]) },
		"told twice":                    func(e *demoEvidence) { e.Events = append(e.Events, e.Events[0]) },
		"not told":                      func(e *demoEvidence) { e.Events = e.Events[1:] },
		"a receipt is missing":          func(e *demoEvidence) { e.Messages[0].Receipts = slices.Delete(e.Messages[0].Receipts, 1, 2) },
		"a token that does not grow":    func(e *demoEvidence) { e.Messages[0].Receipts[1].Token = 1 },
		"an attempt repeats":            func(e *demoEvidence) { e.Messages[0].Receipts[1].Attempt = 1 },
		"a death without its signal":    func(e *demoEvidence) { e.Messages[0].Receipts[0].Signal = "" },
		"a death of another kind":       func(e *demoEvidence) { e.Messages[0].Receipts[1].Category = "released" },
		"an expiry of another kind":     func(e *demoEvidence) { e.Messages[1].Receipts[0].Category = "worker_lost" },
		"nobody was killed":             func(e *demoEvidence) { e.Cut = e.Cut[1:] },
		"late and not refused":          func(e *demoEvidence) { e.Refused = nil },
		"refused for another reason":    func(e *demoEvidence) { e.Refused[0].Category = "inbox_full" },
		"refused and counted":           func(e *demoEvidence) { e.Refused[0].Attempt = 2 },
		"the late process has won":      func(e *demoEvidence) { e.Messages[1].Receipts[1].Process = "old" },
		"a follow-up of a dead attempt": func(e *demoEvidence) { e.Messages[1].Headers[demoToken] = "1" },
		"a follow-up without a token":   func(e *demoEvidence) { delete(e.Messages[1].Headers, demoToken) },
		"a discarded one is visible":    func(e *demoEvidence) { e.Staged[3].Staged = "m3" },
		"a completed one is not":        func(e *demoEvidence) { e.Staged[4].Staged = "m77" },
		"nothing was staged in vain":    func(e *demoEvidence) { e.Staged = e.Staged[4:] },
		"a follow-up too many":          func(e *demoEvidence) { e.Messages[2].Headers[demoParent] = "m1" },
	} {
		t.Run(name, func(t *testing.T) {
			e := soundEvidence()
			tamper(&e)
			if v := judgeDemo(e); v.OK {
				t.Error("the verdict is good all the same")
			}
		})
	}
}
