package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
)

// What users of other queues have met with work that was slow, hung, or said strange
// things, played with real processes. Rows are named as in docs/guarantees.md, "Reports
// from the field".

// Report 4.3 #39: a machine under load starved a live worker of its heartbeats, and its
// job ran twice. The supervisor renews for its child: one that stands still for many
// times its claim's ttl keeps the claim, and completes it.
func TestWorker_StarvedKeepsItsClaim(t *testing.T) {
	pids, gate := newFifo(t), filepath.Join(t.TempDir(), "gate")
	mkfifo(t, gate)
	w := run(t,
		shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo $$ >"$PIDS"
			read -r go <"$GATE"; echo "{\"Method\":\"complete\",\"ID\":\"$id\",\"Token\":$token}" >&3; read -r answer <&3; sleep 1000`,
			func(a *config.Actor) {
				a.Env = map[string]string{"PIDS": pids.path, "GATE": gate}
				a.Replicas = 2 // somebody who would take it
				a.Claim.TTL = 50 * time.Millisecond
				a.LeaseTTL = 100 * time.Millisecond
			}),
		shell("clock", config.Task, "sleep 1"))
	id := w.send("w", "")
	pid := pids.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.await(w.send("clock", "")) // twenty times the ttl
	d, err := w.box.Show(t.Context(), id)
	if err != nil || d.State != mailbox.Claimed || d.Attempt != 1 {
		t.Errorf("while it stands still: %s, attempt %d, %+v, %v", d.State, d.Attempt, d.Receipts, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() { told <- os.WriteFile(gate, []byte("go\n"), 0o600) }() // once it is read
	if d := w.await(id); d.State != mailbox.Done || len(d.Receipts) != 1 {
		t.Errorf("%s, %+v", d.State, d.Receipts)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
}

// Report 4.4 #44: a heartbeat went on without knowing whether the handler lived. Report
// 4.4 #45: a handler ignored its cancellation, was never tried again, and kept its slot.
// The worker renews for ever and ignores SIGTERM, as does a part of it that has left its
// session: it is killed when the actor's timeout is over, whoever renews, the attempt
// ends as timeout, and the next one starts alone, in the same slot.
func TestWorker_OverdueThoughItRenews(t *testing.T) {
	for _, renew := range []config.Renew{config.Auto, config.Manual} {
		t.Run(string(renew), func(t *testing.T) {
			t.Parallel()
			name, pids := "w-"+string(renew), newFifo(t) // the host has one cgroup for each name
			w := run(t, shell(name, config.Worker, `trap "" TERM; setsid sh -c 'trap "" TERM; sleep 1000' & part=$!
				echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo $part >"$PIDS"
				while :; do echo "{\"Method\":\"renew\",\"ID\":\"$id\",\"Token\":$token}" >&3; read -r answer <&3; sleep 0.05; done`,
				func(a *config.Actor) {
					a.Env = map[string]string{"PIDS": pids.path}
					// Within the ttl the child has to have spoken, and to renew.
					a.Timeout = 6 * time.Second
					a.Claim = config.Claim{TTL: 5 * time.Second, Renew: renew}
					a.Retry.MaxAttempts = 2
					a.Stop.Timeout = time.Second // it is not asked, but at the end of the test
				}))
			id := w.send(name, "")
			first := pids.pid()
			second := pids.pid()
			if alive(first) {
				t.Error("the next attempt started beside a part of the first")
			}
			d := w.await(id)
			if d.State != mailbox.Dead || len(d.Receipts) != 2 {
				t.Fatalf("%s, %+v", d.State, d.Receipts)
			}
			for _, r := range d.Receipts {
				if r.Category != mailbox.CategoryTimeout || !r.Counted || r.Slot.Number != 1 {
					t.Errorf("%+v", r)
				}
			}
			if alive(second) {
				t.Error("a part of the tree outlived the receipt")
			}
		})
	}
}

// Report 4.8 #74: a NUL in an error made the failure itself fail, and the message came
// again for ever. What a task says and what a message carries may hold any bytes: a
// subject or sender with a NUL, which no environment can hold, does not keep it from
// starting, and the last words of one that failed are on record, escaped.
func TestTask_AnyBytes(t *testing.T) {
	w := run(t, shell("t", config.Task, `printf '%s|%s' "$SOVEREIGN_SUBJECT" "$SOVEREIGN_FROM"; printf 'a\0b\377\033[2J' >&2; exit $(cat)`,
		func(a *config.Actor) { a.Retry.MaxAttempts = 1 }))
	send := func(body string) mailbox.Detail {
		t.Helper()
		sent, err := w.box.Send(t.Context(), mailbox.Outgoing{To: "t", Body: []byte(body), Subject: "s\x00u=\n", From: "f\x00"})
		if err != nil {
			t.Fatal(err)
		}
		return w.await(sent.ID)
	}
	if d := send("0"); d.State != mailbox.Done || string(d.Result) != "s\uFFFDu=\n|f\uFFFD" || d.Subject != "s\x00u=\n" {
		t.Errorf("%s, %q, %+v", d.State, d.Result, d.Receipts)
	}
	if d := send("3"); d.State != mailbox.Dead || !strings.Contains(d.Receipts[0].Reason, `a\x00b\xff\x1b[2J`) {
		t.Errorf("%s, %+v", d.State, d.Receipts)
	}
}
