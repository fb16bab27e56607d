package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor"
)

// reload has the supervisor run actors, and returns what it does by actor.
func (w *world) reload(actors ...config.Actor) map[string]supervisor.Action {
	w.t.Helper()
	changes, err := w.sup.Reload(w.t.Context(), actors, w.record(actors))
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]supervisor.Action{}
	for _, c := range changes {
		out[c.Actor] = c.Action
	}
	return out
}

func (w *world) record(actors []config.Actor) func(context.Context) error {
	return func(ctx context.Context) error {
		var list []mailbox.Actor
		for _, a := range actors {
			list = append(list, recorded(a))
		}
		return w.box.SetActors(ctx, list)
	}
}

// C10: a process can be signalled while a reload waits for a disk that hangs: no store has a
// part in that. Have Signal wait for the reload and this hangs.
func TestSignal_WhileAReloadWritesItsRecord(t *testing.T) {
	heard := newFifo(t)
	d := shell("d", config.Daemon, `trap 'echo usr1 >"$HEARD"' USR1; echo up >"$HEARD"; while :; do sleep 0.01; done`,
		func(a *config.Actor) { a.Env = map[string]string{"HEARD": heard.path} })
	w := run(t, d)
	heard.word()
	w.state("d", "up")
	writes, answers, reloaded := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := w.sup.Reload(t.Context(), []config.Actor{d}, func(context.Context) error {
			close(writes)
			<-answers
			return nil
		})
		reloaded <- err
	}()
	<-writes
	if err := w.sup.Signal(t.Context(), "d", "USR1"); err != nil {
		t.Error(err)
	}
	if word := heard.word(); word != "usr1" {
		t.Errorf("it heard %q", word)
	}
	close(answers)
	if err := <-reloaded; err != nil {
		t.Error(err)
	}
}

// until waits until the status is as match wants it.
func (w *world) until(what string, match func(map[string]supervisor.ActorStatus) bool) {
	w.t.Helper()
	limit := time.After(patience)
	for {
		changed := w.sup.Changes()
		status := map[string]supervisor.ActorStatus{}
		for _, a := range w.sup.Status() {
			status[a.Actor] = a
		}
		if match(status) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			w.t.Fatalf("never was %s: %+v", what, w.sup.Status())
		}
	}
}

func replicas(n int) func(*config.Actor) { return func(a *config.Actor) { a.Replicas = n } }

// takeOne claims messages, says what each is, and completes it once letGo says so.
func takeOne(said *fifo, dir string) string {
	return fmt.Sprintf(`trap '' TERM
		while :; do
			echo '{"Method":"claim"}' >&3
			while read -r word id token body <&3; do
				test "$word" = drain && exit 0
				test "$word" = claimed && break
			done
			echo "$body" > %s
			read -r _ < %s/$body
			echo "{\"Method\":\"complete\",\"ID\":\"$id\",\"Token\":$token}" >&3
			while read -r word rest <&3; do
				test "$word" = drain && drained=1
				test "$word" = ok && break
			done
			test -z "$drained" || exit 0
		done`, said.path, dir)
}

// J7: what has not changed runs on, and so does what can change while a process runs;
// the new policy holds for it. Have adopt restart whatever has changed, and this fails.
func TestReload_PolicyNeedsNoNewProcess(t *testing.T) {
	serve := func(change ...func(*config.Actor)) config.Actor {
		return shell("d", config.Daemon, "exec sleep 1000", change...)
	}
	w := run(t, serve())
	pid := w.state("d", "up").PID
	if did := w.reload(serve()); len(did) != 0 {
		t.Fatalf("the same again did %v", did)
	}
	never := func(a *config.Actor) {
		a.Restart, a.Backoff.Initial, a.Stop.Timeout, a.Log.Keep = config.Never, time.Hour, time.Second, 9
		a.Intensity.Restarts, a.LeaseTTL, a.Retention.Events = 1, time.Minute, time.Hour
	}
	if did := w.reload(serve(never)); did["d"] != supervisor.ActionUpdate {
		t.Fatalf("did %v", did)
	}
	if got := w.state("d", "up").PID; got != pid {
		t.Fatalf("pid %d, was %d", got, pid)
	}
	if err := w.sup.Signal(t.Context(), "d", "KILL"); err != nil {
		t.Fatal(err)
	}
	w.state("d", "exited") // restart: never, which it was not started with
	w.reload(serve())
	if got := w.state("d", "up").PID; got == pid {
		t.Fatal("restart: always does not start what has exited")
	}
}

// A watchdog that is switched on, made shorter, or switched off holds for the process
// that runs. Remove adoptPolicy and this fails.
func TestReload_WatchdogOfARunningProcess(t *testing.T) {
	silent := func(watchdog time.Duration) config.Actor {
		return shell("w", config.Worker, "exec sleep 1000", func(a *config.Actor) {
			a.Watchdog, a.Intensity.Restarts = watchdog, 1<<30
		})
	}
	w := run(t, silent(0))
	pid := w.state("w", "up").PID
	w.reload(silent(100 * time.Millisecond))
	w.event(0, "watchdog", kind("w", "watchdog"))
	w.slot("w", "up again", func(s supervisor.SlotStatus) bool { return s.State == "up" && s.PID != pid })
	w.reload(silent(0))
	before := w.state("w", "up").PID
	w.reload(silent(time.Hour))
	if got := w.state("w", "up").PID; got != before {
		t.Fatalf("pid %d, was %d", got, before)
	}
}

// J8, J7: what a process is has changed: only that actor gets new ones, with what the
// file says now.
func TestReload_ChangedProcessRestarts(t *testing.T) {
	said := newFifo(t)
	with := func(env map[string]string) []config.Actor {
		return []config.Actor{
			shell("changed", config.Daemon, "echo \"$COLOUR$SHAPE\" > "+said.path+"; exec sleep 1000", func(a *config.Actor) { a.Env = env }),
			shell("same", config.Daemon, "exec sleep 1000"),
		}
	}
	w := run(t, with(map[string]string{"COLOUR": "red", "SHAPE": "round"})...)
	pid := w.state("same", "up").PID
	if got := said.word(); got != "redround" {
		t.Fatal(got)
	}
	if did := w.reload(with(map[string]string{"COLOUR": "blue"})...); len(did) != 1 || did["changed"] != supervisor.ActionRestart {
		t.Fatalf("did %v", did)
	}
	if got := said.word(); got != "blue" { // an env that was removed does not stay
		t.Fatal(got)
	}
	if got := w.state("same", "up").PID; got != pid {
		t.Fatalf("pid %d, was %d", got, pid)
	}
	if ends := w.all("changed", "exited"); len(ends) != 1 {
		t.Fatalf("%d ends", len(ends))
	}
}

// A removed actor finishes its running claims and takes no new ones, its worker ends, and
// its messages stay; once it is back they are worked on.
func TestReload_RemovedWorkerFinishes(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	for _, body := range []string{"one", "two"} {
		mkfifo(t, filepath.Join(dir, body))
	}
	worker, other := shell("w", config.Worker, takeOne(said, dir)), shell("other", config.Daemon, "exec sleep 1000")
	w := run(t, worker, other)
	first := w.send("w", "one")
	said.word()
	pid := w.state("w", "up").PID
	second := w.send("w", "two")
	if did := w.reload(other); did["w"] != supervisor.ActionRemove || len(did) != 1 {
		t.Fatalf("did %v", did)
	}
	if s := w.state("w", "up"); s.PID != pid || !strings.Contains(s.Why, "finishes") {
		t.Fatalf("%+v", s)
	}
	if err := w.sup.Start(t.Context(), "w"); !refusal.Has(err, refusal.UnknownActor) {
		t.Fatalf("start of what is removed: %v", err)
	}
	if _, err := w.box.Send(t.Context(), mailbox.Outgoing{To: "w", Body: []byte("x")}); !refusal.Has(err, refusal.UnknownActor) {
		t.Fatalf("send to what is removed: %v", err)
	}
	letGo(t, dir, "one")
	if d := w.await(first); d.State != mailbox.Done {
		t.Fatalf("%s %+v", d.State, d.Receipts)
	}
	w.until("w gone", func(s map[string]supervisor.ActorStatus) bool { _, there := s["w"]; return !there })
	if alive(pid) {
		t.Fatal("its process lives on")
	}
	if d, err := w.box.Show(t.Context(), second); err != nil || d.State != mailbox.New || len(d.Receipts) != 0 {
		t.Fatalf("%v %s %+v", err, d.State, d.Receipts)
	}
	if did := w.reload(other, worker); did["w"] != supervisor.ActionAdd {
		t.Fatalf("did %v", did)
	}
	if got := said.word(); got != "two" {
		t.Fatal(got)
	}
	letGo(t, dir, "two")
	w.await(second)
}

// letGo lets whoever has the message body complete it.
func letGo(t *testing.T, dir, body string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, body), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, "go")
}

// A worker that is to go and comes back before it has gone is told to take no new work
// already: it is replaced, by one process, once it has finished.
func TestReload_BackBeforeItHasGone(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	for _, body := range []string{"one", "two"} {
		mkfifo(t, filepath.Join(dir, body))
	}
	worker, other := shell("w", config.Worker, takeOne(said, dir)), shell("other", config.Daemon, "exec sleep 1000")
	w := run(t, worker, other)
	first := w.send("w", "one")
	said.word()
	pid := w.state("w", "up").PID
	w.reload(other)
	second := w.send2(t, worker, other)
	letGo(t, dir, "one")
	if d := w.await(first); d.State != mailbox.Done || len(d.Receipts) != 1 {
		t.Fatalf("%s %+v", d.State, d.Receipts)
	}
	if got := said.word(); got != "two" {
		t.Fatal(got)
	}
	if s := w.state("w", "up"); s.PID == pid {
		t.Fatal("the drained process works on")
	}
	letGo(t, dir, "two")
	w.await(second)
}

// J7: a reload that brings back, as it was or as another, a worker or a slot that was to go
// does not cut short what it was told to finish: stop.timeout, which is nothing here, is
// for those who were asked to end. A start by a person does neither. Have adopt restart
// what is drained, and this fails.
func TestReload_BackLetsItFinish(t *testing.T) {
	other := shell("other", config.Daemon, "exec sleep 1000")
	for name, c := range map[string]struct {
		gone, back func(config.Actor) []config.Actor
		start      bool
	}{
		"removed": {
			gone: func(config.Actor) []config.Actor { return []config.Actor{other} },
			back: func(a config.Actor) []config.Actor { return []config.Actor{a, other} },
		},
		"removed, started": {
			gone:  func(config.Actor) []config.Actor { return []config.Actor{other} },
			back:  func(a config.Actor) []config.Actor { return []config.Actor{a, other} },
			start: true,
		},
		"removed, another": {
			gone: func(config.Actor) []config.Actor { return []config.Actor{other} },
			back: func(a config.Actor) []config.Actor {
				a.Env = map[string]string{"COLOUR": "blue"}
				return []config.Actor{a, other}
			},
		},
		"a slot": {
			gone: func(a config.Actor) []config.Actor { a.Replicas = 1; return []config.Actor{a} },
			back: func(a config.Actor) []config.Actor { return []config.Actor{a} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			said, dir := newFifo(t), t.TempDir()
			bodies := []string{"0", "1"}
			for _, body := range append(bodies, "late") {
				mkfifo(t, filepath.Join(dir, body))
			}
			worker := shell("w", config.Worker, takeOne(said, dir), replicas(2),
				func(a *config.Actor) { a.Stop.Timeout = time.Millisecond })
			w := run(t, worker)
			var ids []mailbox.ID
			for _, body := range bodies {
				ids = append(ids, w.send("w", body))
				said.word()
			}
			w.until("both up", func(s map[string]supervisor.ActorStatus) bool { // they can speak before that
				return !slices.ContainsFunc(s["w"].Slots, func(s supervisor.SlotStatus) bool { return s.State != "up" })
			})
			before := w.pids("w")
			for range 2 { // a second time while it still finishes
				w.reload(c.gone(worker)...)
				w.reload(c.back(worker)...)
			}
			if c.start {
				if err := w.sup.Start(t.Context(), "w"); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range w.sup.Status()[0].Slots {
				if s.State != "up" || !slices.Contains(before, s.PID) {
					t.Fatalf("%+v, pids were %v", s, before)
				}
			}
			if s := w.sup.Status()[0].Slots[1]; !strings.Contains(s.Why, "finishes") {
				t.Errorf("nobody is told why it takes nothing: %+v", s)
			}
			for n, id := range ids {
				letGo(t, dir, bodies[n])
				if d := w.await(id); d.State != mailbox.Done || len(d.Receipts) != 1 {
					t.Fatalf("%s %+v", d.State, d.Receipts)
				}
			}
			w.until("replaced", func(s map[string]supervisor.ActorStatus) bool {
				second := s["w"].Slots[1]
				return second.State == "up" && !slices.Contains(before, second.PID)
			})
			late := w.send("w", "late")
			said.word()
			letGo(t, dir, "late")
			w.await(late)
		})
	}
}

// pids are those of an actor's processes, in the order of its slots.
func (w *world) pids(actor string) (out []int) {
	for _, a := range w.sup.Status() {
		for _, s := range a.Slots {
			if a.Actor == actor {
				out = append(out, s.PID)
			}
		}
	}
	return out
}

// send2 brings w back and sends it a second message.
func (w *world) send2(t *testing.T, actors ...config.Actor) mailbox.ID {
	t.Helper()
	w.reload(actors...)
	return w.send("w", "two")
}

// Slots that go finish what they have; those that stay keep their processes; those that
// come start. A slot that goes takes no message though its actor has some.
func TestReload_Replicas(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	for _, body := range []string{"0", "1", "2", "late"} {
		mkfifo(t, filepath.Join(dir, body))
	}
	worker := func(n int) config.Actor { return shell("w", config.Worker, takeOne(said, dir), replicas(n)) }
	w := run(t, worker(1))
	pid := w.state("w", "up").PID
	up := func(n int) func(map[string]supervisor.ActorStatus) bool {
		return func(s map[string]supervisor.ActorStatus) bool {
			return len(s["w"].Slots) == n && !slices.ContainsFunc(s["w"].Slots, func(s supervisor.SlotStatus) bool { return s.State != "up" })
		}
	}
	if did := w.reload(worker(3)); did["w"] != supervisor.ActionScale {
		t.Fatalf("did %v", did)
	}
	w.until("three", up(3))
	var ids []mailbox.ID
	for n := range 3 {
		ids = append(ids, w.send("w", fmt.Sprint(n)))
		said.word()
	}
	late := w.send("w", "late")
	w.reload(worker(1))
	for n := range 3 {
		letGo(t, dir, fmt.Sprint(n))
	}
	for _, id := range ids {
		if d := w.await(id); d.State != mailbox.Done {
			t.Fatalf("%s %+v", d.State, d.Receipts)
		}
	}
	if got := said.word(); got != "late" {
		t.Fatal(got)
	}
	w.until("one", up(1))
	if d, err := w.box.Show(t.Context(), late); err != nil || d.Claim == nil || d.Claim.Holder.Slot.Number != 1 {
		t.Fatalf("%v %+v", err, d.Claim)
	}
	if s := w.state("w", "up"); s.PID != pid || s.Slot != 1 {
		t.Fatalf("%+v, want pid %d", s, pid)
	}
	letGo(t, dir, "late")
	w.await(late)
}

// A task that runs ends as it began, whatever changes; the next one is started by what the
// file says now. A slot that waits for a message becomes a worker, and back.
func TestReload_TasksEndAsTheyBegan(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	for _, body := range []string{"x", "worker"} {
		mkfifo(t, filepath.Join(dir, body))
	}
	task := func(colour string) config.Actor {
		return shell("a", config.Task, fmt.Sprintf("echo $COLOUR > %s; read -r _ < %s/x; echo $COLOUR", said.path, dir),
			func(a *config.Actor) { a.Env = map[string]string{"COLOUR": colour} })
	}
	w := run(t, task("red"))
	first := w.send("a", "")
	said.word()
	second := w.send("a", "")
	if did := w.reload(task("blue")); did["a"] != supervisor.ActionUpdate {
		t.Fatalf("did %v", did)
	}
	letGo(t, dir, "x")
	if d := w.await(first); d.State != mailbox.Done || string(d.Result) != "red\n" {
		t.Fatalf("%s %q", d.State, d.Result)
	}
	if got := said.word(); got != "blue" {
		t.Fatal(got)
	}
	letGo(t, dir, "x")
	if d := w.await(second); string(d.Result) != "blue\n" {
		t.Fatalf("%q", d.Result)
	}
	w.state("a", "idle")
	w.reload(shell("a", config.Worker, takeOne(said, dir)))
	w.state("a", "up")
	third := w.send("a", "worker")
	if got := said.word(); got != "worker" {
		t.Fatal(got)
	}
	letGo(t, dir, "worker")
	w.await(third)
	w.reload(task("green"))
	fourth := w.send("a", "")
	if got := said.word(); got != "green" {
		t.Fatal(got)
	}
	letGo(t, dir, "x")
	w.await(fourth)
}

// A removed task finishes its message; the next one stays.
func TestReload_RemovedTaskFinishes(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	for _, body := range []string{"x"} {
		mkfifo(t, filepath.Join(dir, body))
	}
	task, other := shell("a", config.Task, fmt.Sprintf("echo x > %s; read -r _ < %s/x", said.path, dir)), shell("b", config.Task, "true")
	w := run(t, task, other)
	first := w.send("a", "")
	said.word()
	second := w.send("a", "")
	w.reload(other)
	letGo(t, dir, "x")
	if d := w.await(first); d.State != mailbox.Done {
		t.Fatalf("%s %+v", d.State, d.Receipts)
	}
	w.until("a gone", func(s map[string]supervisor.ActorStatus) bool { _, there := s["a"]; return !there })
	if d, err := w.box.Show(t.Context(), second); err != nil || d.State != mailbox.New {
		t.Fatalf("%v %s", err, d.State)
	}
	if _, err := w.cancelMessage(t.Context(), second); err != nil {
		t.Fatal(err)
	}
}

// J7: what an operator stopped stays so over a reload, changed or not, and over its removal.
// What has failed is started anew if anything of it has changed, else not.
func TestReload_StoppedStaysFailedStartsAnew(t *testing.T) {
	still := func(script string) config.Actor { return shell("still", config.Daemon, script) }
	bad := func(script string, n int) config.Actor {
		return shell("bad", config.Daemon, script, func(a *config.Actor) {
			a.Intensity = config.Intensity{Restarts: n, Within: time.Hour}
			a.Backoff.Max = 20 * time.Millisecond
		})
	}
	w := run(t, still("exec sleep 1000"), bad("exit 3", 1))
	w.state("still", "up")
	if err := w.sup.Stop(t.Context(), "still"); err != nil {
		t.Fatal(err)
	}
	w.state("bad", "failed")
	began := len(w.all("bad", "started"))
	w.reload(still("exec sleep 2000"), bad("exit 3", 1))
	w.state("still", "stopped")
	w.state("bad", "failed")
	if n := len(w.all("bad", "started")); n != began {
		t.Fatalf("%d starts, were %d", n, began)
	}
	w.reload(bad("exit 3", 2))
	w.reload(bad("exec sleep 1000", 2), still("exec sleep 2000"))
	w.state("bad", "up")
	w.state("still", "stopped")
	if err := w.sup.Start(t.Context(), "still"); err != nil {
		t.Fatal(err)
	}
	w.state("still", "up")
}

// J6: where the new actors cannot be recorded, nothing has changed.
func TestReload_NotRecordedChangesNothing(t *testing.T) {
	a := shell("a", config.Daemon, "exec sleep 1000")
	w := run(t, a)
	pid := w.state("a", "up").PID
	full := errors.New("the disk is full")
	b := shell("b", config.Daemon, "exec sleep 1000")
	if _, err := w.sup.Reload(t.Context(), []config.Actor{b}, func(context.Context) error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if d := w.sup.Declared(); len(d) != 1 || d[0].Name != "a" || w.state("a", "up").PID != pid {
		t.Fatalf("%+v", d)
	}
}

// The order of `after` is that of the file that was read last, for starts and for the stop
// of everything; what is added waits for what it comes after.
func TestReload_NewOrder(t *testing.T) {
	said := newFifo(t)
	say := func(name string, after ...string) config.Actor {
		return shell(name, config.Daemon, fmt.Sprintf("trap 'echo -%s > %s; exit' TERM; echo +%s > %s; while :; do sleep 1000 & wait; done", name, said.path, name, said.path),
			func(a *config.Actor) { a.After = after })
	}
	w := run(t, say("a"), say("b", "a"))
	said.word()
	said.word() // which may come before that of a: it is ready once started
	w.reload(say("a", "b"), say("b", "c"), say("c"))
	if got := said.word(); got != "+c" {
		t.Fatal(got)
	}
	w.state("c", "up")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if got := said.word() + said.word() + said.word(); got != "-a-b-c" {
		t.Fatal(got)
	}
}

// Before the slots run and once they stop a reload is refused, and changes nothing.
func TestReload_RefusedWhileStartingAndStopping(t *testing.T) {
	a := shell("a", config.Daemon, "exec sleep 1000")
	w := open(t, t.TempDir(), a)
	none := func(context.Context) error { t.Error("recorded"); return nil }
	if _, err := w.sup.Reload(t.Context(), nil, none); !refusal.Has(err, refusal.Unavailable) {
		t.Fatal(err)
	}
	w.run()
	w.state("a", "up")
	w.sup.Shutdown()
	if _, err := w.sup.Reload(t.Context(), nil, none); !refusal.Has(err, refusal.Unavailable) {
		t.Fatal(err)
	}
}

// Reloads at random, beside stops and starts, in whatever state each slot is: no slot ever
// has two processes, and in the end just what the last file declares runs, once each.
func TestReload_AtRandom(t *testing.T) {
	said, dir := newFifo(t), t.TempDir()
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	script := fmt.Sprintf(`lock=%s/$SOVEREIGN_ACTOR.$SOVEREIGN_SLOT
		trap 'rmdir $lock; exit' TERM
		mkdir $lock || { echo overlap of $lock > %s; exit 1; }
		test "$HURT" = 1 && { rmdir $lock; exit 1; }
		while :; do sleep 1000 & wait; done`, dir, said.path)
	fleet := func(random *rand.Rand) []config.Actor {
		var out []config.Actor
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(4) == 0 {
				continue
			}
			mode := []config.Mode{config.Worker, config.Daemon}[random.IntN(2)]
			out = append(out, shell(name, mode, script, replicas(1+random.IntN(3)), func(a *config.Actor) {
				a.Env = map[string]string{"HURT": fmt.Sprint(random.IntN(3)), "COLOUR": fmt.Sprint(random.IntN(2))}
				a.Restart = []config.Restart{config.Always, config.OnFailure, config.Never}[random.IntN(3)]
				a.Intensity.Restarts = random.IntN(3)
				a.Stop.Timeout = patience // who is killed leaves its lock
				if name == "c" && random.IntN(2) == 0 && named(out, "a") != nil {
					a.After = []string{"a"}
				}
			}))
		}
		return out
	}
	w := run(t, fleet(random)...)
	<-w.sup.Recovered()
	var all sync.WaitGroup
	for n := range 3 {
		random := rand.New(rand.NewPCG(random.Uint64(), uint64(n)))
		all.Go(func() {
			for range 12 {
				actors := fleet(random)
				if _, err := w.sup.Reload(t.Context(), actors, w.record(actors)); err != nil {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(40))*time.Millisecond)
				name := []string{"a", "b", "c"}[random.IntN(3)]
				wish := []func(context.Context, string) error{w.sup.Start, w.sup.Stop, w.sup.Restart}[random.IntN(3)]
				_ = wish(ctx, name) // refused or not
				<-ctx.Done()
				cancel()
			}
		})
	}
	all.Wait()
	last := []config.Actor{shell("a", config.Daemon, script, replicas(2)), shell("b", config.Worker, script)}
	w.reload(last...)
	for _, a := range last {
		if err := w.sup.Start(t.Context(), a.Name); err != nil {
			t.Fatal(err)
		}
	}
	w.until("what is declared", func(s map[string]supervisor.ActorStatus) bool {
		ok := len(s) == len(last)
		for _, a := range last {
			ok = ok && len(s[a.Name].Slots) == a.Replicas
			for _, slot := range s[a.Name].Slots {
				ok = ok && slot.State == "up" && slot.PID != 0
			}
		}
		return ok
	})
	select {
	case word := <-said.said:
		t.Fatal(word)
	default:
	}
}

// A slot that goes claims no more, though its worker does not heed drain and its actor has
// messages: one waits for the slot that stays. Remove endClaims from finishUp and this
// fails.
func TestReload_SlotThatGoesClaimsNoMore(t *testing.T) {
	said := newFifo(t)
	greedy := func(n int) config.Actor {
		return shell("w", config.Worker, `trap '' TERM
			echo '{"Method":"claim","Tell":true}' >&3
			while read -r word id token body <&3; do
				case $word in
					claimed) echo '{"Method":"claim","Tell":true}' >&3; echo "$body" > `+said.path+` ;;
					none) echo none > `+said.path+` ;;
				esac
			done`, replicas(n), func(a *config.Actor) { a.Stop.Timeout = 100 * time.Millisecond })
	}
	w := run(t, greedy(2))
	claimedBy := func(body string) int {
		t.Helper()
		id := w.send("w", body)
		if word := said.word(); word != body {
			t.Fatalf("%q, want %q", word, body)
		}
		d, err := w.box.Show(t.Context(), id)
		if err != nil || d.Claim == nil {
			t.Fatalf("%v, it is claimed by nobody", err)
		}
		return d.Claim.Holder.Slot.Number
	}
	for holds := map[int]bool{}; len(holds) < 2; { // who holds one has asked for the next
		holds[claimedBy("first")] = true
	}
	w.reload(greedy(1))
	if word := said.word(); word != "none" { // what the one that goes has asked for
		t.Fatal(word)
	}
	for _, body := range []string{"late", "later"} { // one for each claim that waited
		if slot := claimedBy(body); slot != 1 {
			t.Errorf("%s is claimed by slot %d", body, slot)
		}
	}
}
