package supervisor

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/mailbox"
)

// What is observed of a task's end decides its outcome, and nothing else.
func TestDeath_Task(t *testing.T) {
	for _, c := range []struct {
		name     string
		death    death
		verdict  mailbox.Verdict
		category mailbox.Category
	}{
		{"exit 0", death{cause: byItself}, mailbox.Complete, mailbox.CategoryCompleted},
		{"exit 1", death{cause: byItself, code: 1}, mailbox.FailAttempt, mailbox.CategoryExitStatus},
		{"exit 65", death{cause: byItself, code: 65}, mailbox.Kill, mailbox.CategoryBadMessage},
		{"exit 75", death{cause: byItself, code: 75}, mailbox.Defer, mailbox.CategoryDeferred},
		{"signal", death{cause: byItself, code: -1, signal: "SEGV"}, mailbox.Unreported, mailbox.CategoryWorkerLost},
		{"timeout", death{cause: byTimeout, code: -1, signal: "KILL"}, mailbox.Unreported, mailbox.CategoryTimeout},
		{"timeout, then exit 0", death{cause: byTimeout}, mailbox.Unreported, mailbox.CategoryTimeout},
		{"stop, exit 0 in time", death{cause: byStop}, mailbox.Complete, mailbox.CategoryCompleted},
		{"stop, exit 1 in time", death{cause: byStop, code: 1}, mailbox.Interrupt, mailbox.CategoryInterrupted},
		{"stop, exit 75 in time", death{cause: byStop, code: 75}, mailbox.Interrupt, mailbox.CategoryInterrupted},
		{"stop, by the signal", death{cause: byStop, code: -1, signal: "TERM"}, mailbox.Interrupt, mailbox.CategoryInterrupted},
		{"stop timeout", death{cause: byForce, code: -1, signal: "KILL"}, mailbox.Interrupt, mailbox.CategoryInterrupted},
		{"stop timeout, then exit 0", death{cause: byForce}, mailbox.Interrupt, mailbox.CategoryInterrupted},
		{"too large a result", death{cause: byResult, code: -1, signal: "KILL"}, mailbox.Unreported, mailbox.CategoryResultTooLarge},
		{"exit 0, with too large a result", death{cause: byItself, over: "1GiB"}, mailbox.Unreported, mailbox.CategoryResultTooLarge},
		{"stop, exit 0 in time, with too large a result", death{cause: byStop, over: "1GiB"}, mailbox.Unreported, mailbox.CategoryResultTooLarge},
		{"cancelled", death{cause: byCancel, code: -1, signal: "KILL"}, mailbox.Kill, mailbox.CategoryCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.death.task([]byte("out"), false)
			if o.Verdict != c.verdict || o.Category != c.category {
				t.Errorf("verdict %d, category %s; want %d, %s", o.Verdict, o.Category, c.verdict, c.category)
			}
			if complete := o.Verdict == mailbox.Complete; complete != (o.Result != nil) {
				t.Errorf("result %q with verdict %d", o.Result, o.Verdict)
			}
			if o.ExitCode != c.death.code || o.Signal != c.death.signal {
				t.Errorf("exit %d signal %q, want %d %q", o.ExitCode, o.Signal, c.death.code, c.death.signal)
			}
			if o.ByWorker {
				t.Error("the supervisor's word was taken for the worker's")
			}
		})
	}
}

// P4.2: a process that died while it held messages never completes one, however
// it ended; and only a stop or an operator's cancel leaves them uncharged.
func TestDeath_LostNeverInfersSuccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := death{cause: cause(rapid.IntRange(int(byItself), int(byResult)).Draw(t, "cause")),
			code: rapid.IntRange(-1, 255).Draw(t, "code"), signal: rapid.SampledFrom([]string{"", "KILL", "SEGV"}).Draw(t, "signal")}
		about := mailbox.Ref{ID: 3, Token: 4}
		for _, ref := range []mailbox.Ref{about, {ID: 3, Token: 5}, {ID: 9, Token: 9}} {
			o := d.of(about)(ref)
			if d.cause == byTimeout && ref == about && o.Category != mailbox.CategoryTimeout {
				t.Fatalf("the message that took too long ended as %s", o.Category)
			}
			if d.cause == byNoProgress && ref == about && o.Category != mailbox.CategoryNoProgress {
				t.Fatalf("the message without progress ended as %s", o.Category)
			}
			if ref == about && d.cause != byTimeout && d.cause != byCancel && d.cause != byNoProgress && d.cause != byResult {
				continue // about is set for those only
			}
			if o.Verdict == mailbox.Complete {
				t.Fatalf("%+v completed a message", d)
			}
			free := d.cause == byStop || d.cause == byForce || d.cause == byCancel && ref != about
			if (o.Verdict == mailbox.Interrupt) != free {
				t.Fatalf("%+v: verdict %d", d, o.Verdict)
			}
		}
	})
}

// The reason of a failed attempt is what the task said last.
func TestDeath_ReasonIsTheLastWords(t *testing.T) {
	o := death{cause: byItself, code: 3, last: "disk on fire\n"}.task(nil, false)
	if !strings.Contains(o.Reason, "exit status 3") || !strings.Contains(o.Reason, "disk on fire") {
		t.Errorf("reason %q", o.Reason)
	}
}

// Whoever gave a process too little memory reads that in its receipt, and not only that a
// signal ended it; how it is charged is as of any other death.
func TestDeath_SaysThatMemoryWasLacking(t *testing.T) {
	o := death{cause: byItself, code: -1, signal: "KILL", memory: "64MiB"}.lost()
	if o.Reason != "killed by SIGKILL by the kernel for lack of memory (limits.memory is 64MiB)" || o.Category != mailbox.CategoryWorkerLost || !o.Died {
		t.Errorf("%+v", o)
	}
	o = death{cause: byItself, code: 137, memory: "64MiB"}.task(nil, false)
	if o.Reason != "exit status 137, after the kernel had killed a process of its for lack of memory (limits.memory is 64MiB)" || o.Category != mailbox.CategoryExitStatus {
		t.Errorf("%+v", o)
	}
}
