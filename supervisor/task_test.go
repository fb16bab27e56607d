package supervisor_test

import (
	"strings"
	"testing"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
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
