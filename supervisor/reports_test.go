package supervisor_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// What users of other queues have met, played with real processes. Rows are named as
// in docs/guarantees.md, "Reports from the field".

// Report 4.1 #13: a job that was given up kept on running and broke the uniqueness of
// its key. The whole tree is dead before the message is; its key is taken until the
// message is removed; and who has the key then finds nobody of the first alive.
func TestTask_KeyIsTakenUntilTheTreeIsGone(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("t", config.Task, `read body; test "$body" = quick && exit 0; trap "" TERM; setsid sh -c 'trap "" TERM; sleep 1000' & echo $! >"$PIDS"; wait`, func(a *config.Actor) {
		a.Env = map[string]string{"PIDS": pids.path}
		a.Timeout = 5 * time.Second // the child has to have spoken by then
		a.Retry.MaxAttempts = 1
	}))
	send := func(body string) mailbox.Sent {
		t.Helper()
		sent, err := w.box.Send(t.Context(), mailbox.Outgoing{To: "t", Key: "k", Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	first := send("long\n")
	escaped := pids.pid()
	if again := send("long\n"); !again.Duplicate || again.ID != first.ID {
		t.Errorf("beside the living child: %+v", again)
	}
	if d := w.await(first.ID); d.State != mailbox.Dead || d.Receipts[0].Category != mailbox.CategoryTimeout {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	if alive(escaped) {
		t.Error("the message is dead, and its tree is not")
	}
	if again := send("long\n"); !again.Duplicate || again.ID != first.ID {
		t.Errorf("before the message is removed: %+v", again)
	}
	if err := w.box.Drop(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second := send("quick\n")
	if second.Duplicate || second.ID == first.ID {
		t.Errorf("with the key free: %+v", second)
	}
	if d := w.await(second.ID); d.State != mailbox.Done {
		t.Errorf("the second is %s, %+v", d.State, d.Receipts)
	}
}

// Report 4.1 #14: an expired job was not stopped, and its retry ran beside it. The
// child ignores SIGTERM and has a part that left its session; the second attempt
// looks whether any of them lives. Hand the message out before the tree is gone and
// this fails.
func TestTask_RetryAfterATimeoutRunsAlone(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	w := run(t, shell("t", config.Task, `if test -e "$SEEN"; then
			for pid in $(cat "$SEEN"); do grep -qs '^State:.[^ZX]' /proc/$pid/status && echo "overlap $pid"; done
			exit 0
		fi
		trap '' TERM
		setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $$ $! >"$SEEN"; while :; do sleep 1; done`,
		func(a *config.Actor) {
			a.Env = map[string]string{"SEEN": seen}
			a.Timeout = time.Second
			a.Retry.MaxAttempts = 100 // on a busy machine more of them time out
		}))
	d := w.await(w.send("t", ""))
	if d.State != mailbox.Done || len(d.Result) != 0 {
		t.Errorf("%s, %q", d.State, d.Result)
	}
	if len(d.Receipts) < 2 {
		t.Errorf("%+v", d.Receipts)
	}
	for i, r := range d.Receipts[1:] {
		if before := d.Receipts[i]; before.Category != mailbox.CategoryTimeout || r.Token <= before.Token {
			t.Errorf("%+v before %+v", before, r)
		}
	}
}

// Report 4.2 #24: orphans were found only when the next process started. A worker is
// killed whose actor is not restarted: nothing starts, and its message waits again
// all the same, with a receipt. Report 4.2 #33: nor does it vanish with the worker's
// own record.
func TestWorker_DeathIsRecoveredWithoutASuccessor(t *testing.T) {
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; kill -KILL $$`,
		func(a *config.Actor) { a.Restart = config.Never }))
	id := w.send("w", "")
	w.event(0, "the attempt is recovered", kind("w", protocol.EventFailed))
	d, err := w.box.Show(t.Context(), id)
	if err != nil || d.State != mailbox.New || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryWorkerLost || d.Receipts[0].Signal != "KILL" {
		t.Fatalf("%+v, %v", d, err)
	}
	w.state("w", "exited")
	leases, err := w.box.Leases().List(t.Context())
	if err != nil || len(leases) != 0 {
		t.Errorf("leases %+v, %v", leases, err)
	}
}
