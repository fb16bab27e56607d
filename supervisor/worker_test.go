package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/supervisor"
)

// A worker claims on descriptor 3, completes, and goes on.
func TestWorker_Completes(t *testing.T) {
	w := run(t, shell("w", config.Worker, `
		while :; do
			echo '{"Method":"claim"}' >&3
			read -r word id token body <&3
			test "$word" = claimed || exit 9
			echo "{\"Method\":\"complete\",\"ID\":\"$id\",\"Token\":$token}" >&3
			read -r answer <&3
			test "$answer" = ok || exit 8
		done`))
	for n := range 5 {
		if d := w.await(w.send("w", strconv.Itoa(n))); d.State != mailbox.Done || string(d.Result) != "done" {
			t.Fatalf("%s, %q", d.State, d.Result)
		}
	}
	s := w.state("w", "up")
	if s.PID == 0 || s.Restarts != 0 || !strings.HasPrefix(s.Process, "proc_") || len(s.Process) > 16 || s.Lease.Token == 0 || s.Lease.Remaining <= 0 {
		t.Errorf("status %+v", s)
	}
}

// A completion that a worker wrote before its end counts, though it ends at once.
func TestWorker_LastWordsCount(t *testing.T) {
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3
		read -r word id token body <&3
		echo "{\"Method\":\"complete\",\"ID\":\"$id\",\"Token\":$token}" >&3
		exit 0`))
	if d := w.await(w.send("w", "")); d.State != mailbox.Done || len(d.Receipts) != 1 {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
}

// P4.2, P3.9, report 4.5 #53: a worker that dies with a claim leaves a receipt worker_lost with the
// signal; the message is dead after max_attempts; the deaths on one message count
// once for intensity.
func TestWorker_DeathIsWorkerLost(t *testing.T) {
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo dying >&2; kill -KILL $$`,
		func(a *config.Actor) {
			a.Retry.MaxAttempts = 4
			a.Intensity = config.Intensity{Restarts: 1, Within: time.Hour}
			a.Backoff.Max = 20 * time.Millisecond
		}))
	d := w.await(w.send("w", ""))
	if d.State != mailbox.Dead || len(d.Receipts) != 4 {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	for _, r := range d.Receipts {
		if r.Category != mailbox.CategoryWorkerLost || r.Signal != "KILL" || !strings.Contains(r.Reason, "dying") {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(d.Poison, "4 processes in a row") {
		t.Errorf("poison: %q", d.Poison)
	}
	w.state("w", "up")
}

// Mistake 27, report 4.4 #46: the process of a claim whose progress does not change
// is told and killed with its tree, and the attempt ends as no_progress, also where
// the supervisor renews and nothing else would ever end it.
func TestWorker_NoProgress(t *testing.T) {
	for _, mode := range []config.Mode{config.Worker, config.Task} {
		t.Run(string(mode), func(t *testing.T) {
			command := `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; sleep 1000`
			if mode == config.Task {
				command = `sleep 1000`
			}
			w := run(t, shell("w", mode, command, func(a *config.Actor) {
				a.ProgressTimeout = 200 * time.Millisecond
				a.Retry.MaxAttempts = 1
			}))
			id := w.send("w", "")
			d := w.await(id)
			if d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryNoProgress || !d.Receipts[0].Counted {
				t.Fatalf("%s, %+v", d.State, d.Receipts)
			}
			if ev := w.event(0, "it makes no progress", kind("w", "no_progress")); ev.Message != id {
				t.Errorf("the event names message %v, want %v: %+v", ev.Message, id, ev)
			}
		})
	}
}

// A claim that takes longer than `timeout` ends its process; it is timeout for
// that message, which the event names.
func TestWorker_Overdue(t *testing.T) {
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; sleep 1000`,
		func(a *config.Actor) { a.Timeout = 200 * time.Millisecond; a.Retry.MaxAttempts = 1 }))
	id := w.send("w", "")
	d := w.await(id)
	if d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryTimeout {
		t.Fatalf("%s, %+v", d.State, d.Receipts)
	}
	if ev := w.event(0, "it took too long", kind("w", "timeout")); ev.Message != id {
		t.Errorf("the event names message %v, want %v: %+v", ev.Message, id, ev)
	}
}

// A worker without a sign of life is killed; one whose claim waits is alive.
func TestWorker_Watchdog(t *testing.T) {
	idle := shell("idle", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; sleep 1000`,
		func(a *config.Actor) {
			a.Watchdog = 3 * time.Second // the child has to claim by then
			a.Backoff.Max = time.Minute  // so that the end of so long a run is still one of a series
		})
	deaf := idle
	deaf.Name, deaf.Command = "deaf", []string{"/bin/sh", "-c", "sleep 1000"}
	w := run(t, idle, deaf)
	w.event(0, "watchdog of deaf", kind("deaf", "watchdog"))
	w.event(0, "restart of deaf", kind("deaf", "restarting"))
	if got := w.all("idle", "watchdog"); len(got) != 0 {
		t.Fatalf("a worker that waits for a message was killed: %+v", got)
	}
	d := w.await(func() mailbox.ID {
		id := w.send("idle", "")
		w.event(0, "watchdog of idle", kind("idle", "watchdog"))
		w.finish("idle")
		return id
	}())
	if d.Receipts[0].Category != mailbox.CategoryNoProgress {
		t.Errorf("%+v", d.Receipts)
	}
}

// finish has an actor's remaining message end: its actor is stopped and it is
// cancelled.
func (w *world) finish(actor string) {
	w.t.Helper()
	if err := w.sup.Stop(w.t.Context(), actor); err != nil {
		w.t.Fatal(err)
	}
	page, err := w.box.List(w.t.Context(), mailbox.Filter{Actor: actor})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range page.Messages {
		if m.State == mailbox.New || m.State == mailbox.Parked {
			if _, err := w.cancelMessage(w.t.Context(), m.ID); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// A cancelled message's worker is told, and killed after stop.timeout unless it has
// ended the claim by then.
func TestWorker_Cancel(t *testing.T) {
	heard := newFifo(t)
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo "$word" >"$HEARD"
		read -r what rest <&3; echo "$what" >"$HEARD"; sleep 1000`, func(a *config.Actor) {
		a.Env = map[string]string{"HEARD": heard.path}
		a.Stop.Timeout = 3 * time.Second // the child has to have spoken by then
	}))
	id := w.send("w", "")
	if word := heard.word(); word != "claimed" {
		t.Fatalf("the worker heard %q", word)
	}
	d, err := w.cancelMessage(t.Context(), id)
	if err != nil || d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryCancelled {
		t.Fatalf("%s, %+v, %v", d.State, d.Receipts, err)
	}
	if word := heard.word(); word != "claim_lost" {
		t.Errorf("the worker heard %q", word)
	}
	// The event is of that message, as those of tasks are. Put the id into its text alone and this fails.
	ev := w.event(0, "it is being cancelled", func(ev mailbox.Event) bool { return ev.Kind == protocol.EventCancelling })
	if ev.Message != id || ev.Text != "" {
		t.Errorf("cancelling is told of %s, with the text %q", ev.Message, ev.Text)
	}
}

// A worker that lives and whose lease is gone is told to stop at once, and only once.
// Leave out notify in tellLeaseLost and this hangs.
func TestWorker_LeaseLost(t *testing.T) {
	heard := newFifo(t)
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo "$SOVEREIGN_PROCESS" >"$HEARD"
		read -r what rest <&3; echo "$what" >"$HEARD"; sleep 1000`, func(a *config.Actor) {
		a.Env = map[string]string{"HEARD": heard.path}
		a.OnWorkerLost = config.ParkMessage
	}))
	id := w.send("w", "")
	p, err := fence.ParseProcess(heard.word())
	if err != nil {
		t.Fatal(err)
	}
	h, _, ok := w.sup.Lookup(p)
	if !ok {
		t.Fatal("it does not live")
	}
	if err := w.box.Leases().Release(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.sup.LeaseLost(p, "the slot has no lease")
	}
	if word := heard.word(); word != "lease_lost" {
		t.Errorf("the worker heard %q", word)
	}
	w.event(0, "lease_lost", kind("w", "lease_lost"))
	if err := w.sup.Stop(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if d := w.await(id); d.State != mailbox.Parked || len(w.all("w", "lease_lost")) != 1 {
		t.Errorf("%s, %+v", d.State, w.all("w", "lease_lost"))
	}
}

// What a worker is to be told while its channel is only being made, through which it can
// ask already, it is told once that is done. Say nothing where nothing is served yet, and
// this hangs.
func TestWorker_IsToldWhatCameBeforeItsChannel(t *testing.T) {
	heard := newFifo(t)
	w := open(t, t.TempDir(), shell("w", config.Worker, `read -r what rest <&3; echo "$what" >"$HEARD"; sleep 1000`,
		func(a *config.Actor) { a.Env = map[string]string{"HEARD": heard.path} }))
	w.wire.attaching = func(h fence.Holder) { w.sup.LeaseLost(h.Process, "the slot has no lease") }
	w.run()
	if word := heard.word(); word != "lease_lost" {
		t.Errorf("the worker heard %q", word)
	}
}

// A stop tells the worker to drain first, then sends the signal; what it holds is
// interrupted and not charged.
func TestWorker_StopDrains(t *testing.T) {
	heard := newFifo(t)
	w := run(t, shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3
		trap 'read -r what rest <&3; echo $what >"$HEARD"; exit 0' TERM; echo up >"$HEARD"; while :; do sleep 0.01; done`,
		func(a *config.Actor) { a.Env = map[string]string{"HEARD": heard.path} }))
	id := w.send("w", "")
	heard.word()
	if err := w.sup.Stop(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if word := heard.word(); word != "drain" {
		t.Errorf("the worker heard %q", word)
	}
	d, err := w.box.Show(t.Context(), id)
	if err != nil || d.State != mailbox.New || d.Attempts != 0 || d.Receipts[0].Category != mailbox.CategoryInterrupted {
		t.Errorf("%s, %d attempts, %+v, %v", d.State, d.Attempts, d.Receipts, err)
	}
}

// A process that says `ready` at once is up, even before the supervisor has looked;
// one that does not is killed, and what comes after it waits and says for whom.
func TestReady_NotifyAndAfter(t *testing.T) {
	ready := &config.Ready{Notify: true, Timeout: patience}
	w := run(t,
		shell("last", config.Task, "cat", func(a *config.Actor) { a.After = []string{"quick"} }),
		shell("quick", config.Worker, `echo '{"Method":"ready"}' >&3; sleep 1000`, func(a *config.Actor) { a.Ready = ready }),
		shell("never", config.Worker, `sleep 1000`, func(a *config.Actor) {
			a.Ready = &config.Ready{Notify: true, Timeout: 200 * time.Millisecond}
			a.Intensity.Restarts = 1
		}),
		shell("waits", config.Daemon, `sleep 1000`, func(a *config.Actor) { a.After = []string{"quick", "never"} }),
	)
	w.state("quick", "up")
	if d := w.await(w.send("last", "x")); d.State != mailbox.Done {
		t.Errorf("%s", d.State)
	}
	s := w.state("never", "failed")
	if !strings.Contains(s.Why, "not ready within 200ms") {
		t.Errorf("why: %q", s.Why)
	}
	w.slot("waits", "waiting for never", func(s supervisor.SlotStatus) bool { // and before that for quick
		return s.State == "waiting" && strings.Contains(s.Why, "never")
	})
}

// Readiness by probes: a command, a TCP port, an HTTP page.
func TestReady_Probes(t *testing.T) {
	dir := t.TempDir()
	address := freeAddress(t)
	roleEnv := func(role string) map[string]string {
		return map[string]string{"TEST_ROLE": role, "TEST_ADDRESS": address}
	}
	w := run(t,
		shell("exec", config.Daemon, `sleep 0.1; : >ready; sleep 1000`, func(a *config.Actor) {
			a.Cwd = dir
			a.Ready = &config.Ready{Exec: []string{"test", "-e", "ready"}, Timeout: patience}
		}),
		shell("http", config.Daemon, "", func(a *config.Actor) {
			a.Command = []string{os.Args[0]}
			a.Env = roleEnv("http")
			a.Ready = &config.Ready{HTTP: "http://" + address + "/", Timeout: patience}
		}),
		shell("tcp", config.Daemon, "sleep 1000", func(a *config.Actor) {
			a.Ready = &config.Ready{TCP: address, Timeout: patience}
		}),
	)
	for _, name := range []string{"exec", "http", "tcp"} {
		w.state(name, "up")
	}
}

// F11: no successor before the whole tree of the one before is gone, over many
// restarts of a process that does not want to end.
func TestRestart_NoOverlap(t *testing.T) {
	lock, up := filepath.Join(t.TempDir(), "lock"), newFifo(t)
	w := run(t, shell("d", config.Daemon, `mkdir "$LOCK" || echo overlap >&2
		trap '' TERM; sleep 1000 & trap 'rmdir "$LOCK"; exit 0' TERM; echo up >"$UP"; wait`,
		func(a *config.Actor) { a.Env = map[string]string{"LOCK": lock, "UP": up.path} }))
	up.word()          // who is asked to end before it has its trap leaves the lock
	w.state("d", "up") // a restart of one that is being started, which can speak by then, is that start
	for range 5 {
		if err := w.sup.Restart(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		up.word()
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(w.dir, "logs", "d.1.log"))
	if strings.Contains(string(text), "overlap") {
		t.Errorf("two processes of one slot: %s", text)
	}
}

// F10: twenty restarts at one time leave exactly one process.
func TestRestart_Concurrent(t *testing.T) {
	w := run(t, shell("d", config.Daemon, `exec sleep 1000`))
	w.state("d", "up")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := w.sup.Restart(context.Background(), "d"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := w.state("d", "up")
	if !alive(s.PID) || s.Restarts == 0 {
		t.Errorf("%+v", s)
	}
	if n := len(w.all("d", "started")) - len(w.all("d", "exited")); n != 1 {
		t.Errorf("%d processes are on record as running", n)
	}
}

// C1: the leader ends on TERM, a member of its tree ignores it: stopped only when
// both are gone.
func TestStop_WholeTree(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("d", config.Daemon, `trap "" TERM; setsid sleep 1000 & trap "exit 0" TERM; echo $! >"$PIDS"; wait`,
		func(a *config.Actor) { a.Env = map[string]string{"PIDS": pids.path} }))
	grandchild := pids.pid()
	if err := w.sup.Stop(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if alive(grandchild) {
		t.Error("stop reported success with a process left")
	}
	w.state("d", "stopped")
}

// C4: a process that ignores the signal is killed after stop.timeout.
func TestStop_Escalates(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("d", config.Daemon, `trap "" TERM; echo $$ >"$PIDS"; while :; do sleep 1; done`, func(a *config.Actor) {
		a.Env = map[string]string{"PIDS": pids.path}
		a.Stop.Timeout = 200 * time.Millisecond
	}))
	pid := pids.pid()
	began := time.Now()
	if err := w.sup.Stop(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("the stop took %s", took)
	}
	if alive(pid) {
		t.Error("it lives")
	}
}

// C10: a signal reaches a process that is stopping.
func TestSignal_WhileStopping(t *testing.T) {
	pids := newFifo(t)
	w := run(t, shell("d", config.Daemon, `trap "" TERM; echo $$ >"$PIDS"; while :; do sleep 1; done`, func(a *config.Actor) {
		a.Env = map[string]string{"PIDS": pids.path}
		a.Stop.Timeout = time.Hour
	}))
	pids.pid()
	stopped := make(chan error, 1)
	go func() { stopped <- w.sup.Stop(context.Background(), "d") }()
	w.state("d", "stopping")
	if err := w.sup.Signal(t.Context(), "d", "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := w.sup.Signal(t.Context(), "d", "HUP"); err == nil {
		t.Error("a signal to nobody was no refusal")
	}
	if err := w.sup.Signal(t.Context(), "d", "NOPE"); err == nil {
		t.Error("a signal that does not exist was no refusal")
	}
}

// F9: a stop during the backoff, and while the process is not ready yet, holds.
func TestStop_DuringBackoffAndStarting(t *testing.T) {
	w := run(t,
		shell("b", config.Daemon, "exit 1", func(a *config.Actor) { a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour }),
		shell("s", config.Worker, "sleep 1000", func(a *config.Actor) { a.Ready = &config.Ready{Notify: true, Timeout: time.Hour} }))
	w.state("b", "backoff")
	w.state("s", "starting")
	for _, name := range []string{"b", "s"} {
		if err := w.sup.Stop(t.Context(), name); err != nil {
			t.Error(err)
		}
		if s := w.state(name, "stopped"); s.PID != 0 {
			t.Errorf("%+v", s)
		}
	}
	// Durable: a supervisor that starts on this store leaves them stopped.
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	again := open(t, w.dir, shell("b", config.Daemon, "exit 1"), shell("s", config.Worker, "sleep 1000"), shell("o", config.Daemon, "sleep 1000")).run()
	again.state("o", "up")
	for _, a := range again.sup.Status()[:2] {
		if a.State != "stopped" {
			t.Errorf("%s is %s", a.Actor, a.State)
		}
	}
}

// F1, F2, F4: a process that always ends is given up after `intensity`, whatever its
// uptime; a start by hand forgives.
func TestIntensity_GivesUp(t *testing.T) {
	w := run(t, shell("d", config.Daemon, "sleep 0.05; exit 3", func(a *config.Actor) {
		a.Intensity.Restarts = 3
		a.Backoff = config.Backoff{Initial: time.Millisecond, Max: 2 * time.Millisecond, Factor: 1}
	}))
	s := w.state("d", "failed")
	if got := len(w.all("d", "started")); got != 4 {
		t.Errorf("%d starts with an intensity of 3, want 4", got)
	}
	if !strings.Contains(s.Why, "exit status 3") || s.Next != "sovereign start d" {
		t.Errorf("%+v", s)
	}
	if err := w.sup.Start(t.Context(), "d"); err != nil {
		t.Logf("start: %v", err) // it may have ended again already
	}
	w.slot("d", "up again, or failed again", func(supervisor.SlotStatus) bool { return len(w.all("d", "started")) > 4 })
	w.state("d", "failed")
	if got := len(w.all("d", "started")); got != 8 {
		t.Errorf("%d starts after a start by hand, want 8: it did not forgive", got)
	}
}

// F6, F7: each policy with each end.
func TestRestartPolicy_RealExits(t *testing.T) {
	var actors []config.Actor
	want := map[string]protocol.SlotState{}
	for _, p := range []config.Restart{config.Always, config.OnFailure, config.Never} {
		for _, code := range []int{0, 1} {
			name := fmt.Sprintf("%s-%d", p, code)
			actors = append(actors, shell(name, config.Daemon, fmt.Sprintf("exit %d", code), func(a *config.Actor) {
				a.Restart = p
				a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour
			}))
			want[name] = "exited"
			if p == config.Always || p == config.OnFailure && code == 1 {
				want[name] = "backoff"
			}
		}
	}
	w := run(t, actors...)
	for name, state := range want {
		w.state(name, state)
	}
}

// C5, C3: everything stops at the same time, and dependants before what they come
// after.
func TestShutdown_ParallelAndOrdered(t *testing.T) {
	heard := newFifo(t)
	env := map[string]string{"HEARD": heard.path}
	gate := filepath.Join(t.TempDir(), "gate")
	mkfifo(t, gate)
	hold, err := os.OpenFile(gate, os.O_RDWR, 0) // so that who reads it waits for a line
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	env["GATE"] = gate
	script := func(name string) string {
		return `trap 'echo ` + name + ` >"$HEARD"; read -r go <"$GATE"; exit 0' TERM; echo up >"$HEARD"; while :; do sleep 0.01; done`
	}
	actors := []config.Actor{
		shell("db", config.Daemon, script("db"), func(a *config.Actor) { a.Env = env }),
		shell("app", config.Daemon, script("app"), func(a *config.Actor) { a.Env = env; a.After = []string{"db"} }),
	}
	for n := range 10 {
		actors = append(actors, shell(fmt.Sprintf("d%d", n), config.Daemon, script("d"), func(a *config.Actor) { a.Env = env }))
	}
	for n := range actors {
		actors[n].Stop.Timeout = patience
	}
	w := run(t, actors...)
	for range actors {
		heard.word()
	}
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	for n := range len(actors) - 1 { // all at the same time: none of them has ended yet
		if word := heard.word(); word == "db" {
			t.Errorf("db is asked to end beside %d of those that do not come before it", n)
		}
	}
	for range actors {
		fmt.Fprintln(hold)
	}
	if word := heard.word(); word != "db" {
		t.Errorf("the last to be asked is %q", word)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// C8: hurried, nobody is waited for.
func TestHurry(t *testing.T) {
	up := newFifo(t)
	w := run(t, shell("d", config.Daemon, `trap "" TERM; echo up >"$UP"; while :; do sleep 1; done`, func(a *config.Actor) {
		a.Env = map[string]string{"UP": up.path}
		a.Stop.Timeout = time.Hour
		a.Replicas = 3
	}))
	for range 3 {
		up.word()
	}
	w.sup.Shutdown()
	w.state("d", "stopping")
	w.sup.Hurry()
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
}
