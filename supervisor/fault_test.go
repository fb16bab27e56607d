package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/supervisor"
)

// A moody store refuses writes while it is told to.
type moody struct {
	store.Store
	mu     sync.Mutex
	refuse error         // mu guards it; nil = it writes
	asked  chan struct{} // gets one for each refused write, if there is room
	writes atomic.Int64  // that were not refused
}

func (m *moody) say(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = err
}

func (m *moody) Update(ctx context.Context, fn func(store.Tx) error) error {
	m.mu.Lock()
	refuse := m.refuse
	m.mu.Unlock()
	if refuse != nil {
		select {
		case m.asked <- struct{}{}:
		default:
		}
		return refuse
	}
	m.writes.Add(1)
	return m.Store.Update(ctx, fn)
}

// tried waits until one more end was refused.
func (m *moody) tried(t *testing.T) {
	t.Helper()
	select {
	case <-m.asked:
	case <-time.After(patience):
		t.Fatal("the end was not tried")
	}
}

func openMoody(t *testing.T, actors ...config.Actor) (*world, *moody) {
	m := &moody{asked: make(chan struct{}, 1)}
	w := openWith(t, t.TempDir(), func(st store.Store) store.Store { m.Store = st; return m }, actors...)
	return w.run(), m
}

// A full disk does not lose an end: it is recorded once there is room, and until then
// the message is not handed out again and nothing is started in the slot.
func TestDiskFull_EndIsRecordedLater(t *testing.T) {
	up, release := newFifo(t), filepath.Join(t.TempDir(), "release")
	mkfifo(t, release)
	w, store := openMoody(t, shell("t", config.Task, `echo up >"$UP"; read -r word <"$RELEASE"; echo result`,
		func(a *config.Actor) { a.Env = map[string]string{"UP": up.path, "RELEASE": release} }))
	id := w.send("t", "")
	up.word()
	store.say(refusal.New(refusal.DiskFull, "write", "no space left on device", "").Later())
	if err := os.WriteFile(release, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.state("t", "ending")
	for range 2 { // it has tried twice
		store.tried(t)
	}
	if s := w.state("t", "ending"); s.State != "ending" {
		t.Errorf("%+v", s)
	}
	store.say(nil)
	d := w.await(id)
	if d.State != mailbox.Done || string(d.Result) != "result\n" || len(d.Receipts) != 1 {
		t.Errorf("%s, %q, %+v", d.State, d.Result, d.Receipts)
	}
	w.state("t", "idle")
}

// restarting is a daemon that says when it is up, and ends at each word; its like is
// started at once.
func restarting(up *fifo, release string) config.Actor {
	return shell("d", config.Daemon, `echo up >"$UP"; read -r word <"$RELEASE"; exit 1`, func(a *config.Actor) {
		a.Env, a.Backoff, a.Intensity.Restarts = map[string]string{"UP": up.path, "RELEASE": release}, config.Backoff{}, 1000
	})
}

// Between two processes of a slot there is one commit, where the second is started at
// once: it ends the one and grants the other its lease. Have startSuccessor be false and this
// fails.
func TestRestart_IsOneCommit(t *testing.T) {
	up, release := newFifo(t), filepath.Join(t.TempDir(), "release")
	mkfifo(t, release)
	w, store := openMoody(t, restarting(up, release))
	up.word()
	w.state("d", "up")
	w.event(0, "the start on record", func(ev mailbox.Event) bool { return ev.Kind == protocol.EventSupervisorStarted })
	before := store.writes.Load()
	const n = 3
	for range n {
		if err := os.WriteFile(release, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		up.word()
	}
	if got := store.writes.Load() - before; got != n {
		t.Errorf("%d commits for %d restarts", got, n)
	}
	w.state("d", "up")
	if exits, starts := w.all("d", protocol.EventExited), w.all("d", protocol.EventStarted); len(exits) != n || len(starts) != n+1 ||
		exits[n-1].Seq > starts[n].Seq {
		t.Errorf("%+v, %+v", exits, starts)
	}
}

// A disk that is full refuses a start and takes an end: the end is recorded all the same,
// and the start comes later. Until then nothing runs in the slot. Give up the end where
// both are refused and this fails.
func TestDiskFull_EndIsRecordedBeforeTheNextStart(t *testing.T) {
	up, release := newFifo(t), filepath.Join(t.TempDir(), "release")
	mkfifo(t, release)
	w, store := openMoody(t, restarting(up, release))
	up.word()
	w.state("d", "up")
	store.say(refusal.New(refusal.DiskFull, "write", "no space left on device", "").Later())
	if err := os.WriteFile(release, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	for range 3 { // both, and the end twice
		store.tried(t)
	}
	if exits := w.all("d", protocol.EventExited); len(exits) != 0 {
		t.Errorf("%+v", exits)
	}
	store.say(nil)
	up.word()
	w.state("d", "up")
	exits, starts := w.all("d", protocol.EventExited), w.all("d", protocol.EventStarted)
	if len(exits) != 1 || len(starts) != 2 || exits[0].Seq > starts[1].Seq || exits[0].Process == starts[1].Process {
		t.Errorf("%+v, %+v", exits, starts)
	}
}

// A store that fails otherwise, and says that nothing was stored, is asked again too: an
// end that is given up leaves the lease held for ever. Take "failed" for an answer in
// insist and this fails.
func TestStoreFails_EndIsRecordedLater(t *testing.T) {
	up, release := newFifo(t), filepath.Join(t.TempDir(), "release")
	mkfifo(t, release)
	w, store := openMoody(t, shell("t", config.Task, `echo up >"$UP"; read -r word <"$RELEASE"; echo result`,
		func(a *config.Actor) { a.Env = map[string]string{"UP": up.path, "RELEASE": release} }))
	id := w.send("t", "")
	up.word()
	store.say(refusal.New(refusal.Failed, "write", "too many open files", ""))
	if err := os.WriteFile(release, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	store.tried(t)
	store.say(nil)
	if d := w.await(id); d.State != mailbox.Done || len(d.Receipts) != 1 {
		t.Errorf("%s, %+v", d.State, d.Receipts)
	}
	w.state("t", "idle")
}

// P4.10: a write whose outcome is not known stops the supervisor: its children are
// killed, and it says why.
func TestOutcomeUnknown_Stops(t *testing.T) {
	pids := newFifo(t)
	said := map[string]string{"PIDS": pids.path}
	w, store := openMoody(t,
		shell("d", config.Daemon, `trap '' TERM; echo $$ >"$PIDS"; while :; do sleep 1; done`, func(a *config.Actor) { a.Env = said; a.Stop.Timeout = time.Hour }),
		shell("t", config.Task, `true`))
	pid := pids.pid()
	w.state("d", "up") // it can speak before that, and is not signalled then
	w.await(w.send("t", ""))
	w.state("t", "idle")
	store.say(refusal.New(refusal.OutcomeUnknown, "commit", "input/output error", ""))
	if err := w.sup.Signal(t.Context(), "d", "KILL"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.ended:
		w.ended <- nil // as far as the clean-up is concerned
		if !refusal.Has(err, refusal.OutcomeUnknown) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if alive(pid) {
		t.Error("a child lives")
	}
	store.say(nil)
}

// P4.6: the end of a task that the store did not take before its supervisor ended is not
// durable, and leaves its workspace to the next one, which records the end and reclaims
// it. Reclaim it whatever insist says and this fails.
func TestTask_WorkspaceWaitsForAnEndOnRecord(t *testing.T) {
	for _, refuse := range []*refusal.Error{
		refusal.New(refusal.DiskFull, "write", "no space left on device", "").Later(),
		refusal.New(refusal.OutcomeUnknown, "commit", "input/output error", ""),
	} {
		t.Run(string(refuse.Category), func(t *testing.T) {
			said, release := newFifo(t), filepath.Join(t.TempDir(), "release")
			mkfifo(t, release)
			task := shell("t", config.Task, `echo kept >"$SOVEREIGN_WORKSPACE/work"; echo "$SOVEREIGN_WORKSPACE" >"$SAID"; read -r word <"$RELEASE"`,
				func(a *config.Actor) {
					a.Env, a.Retry.MaxAttempts = map[string]string{"SAID": said.path, "RELEASE": release}, 1
				})
			w, store := openMoody(t, task)
			id := w.send("t", "")
			space := said.word()
			store.say(refuse)
			if err := os.WriteFile(release, []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
			store.tried(t)
			if err := w.stop(); err != nil && !refusal.Has(err, refuse.Category) {
				t.Fatal(err)
			}
			w.result = nil // as far as the clean-up is concerned
			if text, err := os.ReadFile(filepath.Join(space, "work")); string(text) != "kept\n" {
				t.Errorf("before its end was on record its workspace held %q, %v", text, err)
			}

			next := open(t, w.dir, task).run()
			if d := next.await(id); d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryWorkerLost {
				t.Errorf("%s, %+v", d.State, d.Receipts)
			}
			next.state("t", "idle")
			if _, err := os.Stat(space); !os.IsNotExist(err) {
				t.Errorf("its workspace afterwards: %v", err)
			}
		})
	}
}

// C12: what does not die of SIGKILL leaves the slot stuck, says which process, and
// nothing is started beside it; once it is gone the last wish counts.
func TestStuck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a kill may take")
	}
	pids := newFifo(t)
	w := run(t, shell("d", config.Daemon, `echo $$ >"$PIDS"; exec sleep 1000`, func(a *config.Actor) { a.Env = map[string]string{"PIDS": pids.path} }))
	pid := pids.pid()
	w.state("d", "up")
	thaw := freeze(t, pid)
	err := w.sup.Stop(t.Context(), "d")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("could not kill pid %d", pid)) {
		t.Errorf("stop said %v", err)
	}
	s := w.state("d", "stuck")
	if !strings.Contains(s.Why, fmt.Sprint(pid)) || s.Next == "" {
		t.Errorf("%+v", s)
	}
	if err := w.sup.Start(t.Context(), "d"); err == nil {
		t.Error("a start beside what is stuck was no refusal")
	}
	if got := len(w.all("d", "started")); got != 1 {
		t.Errorf("%d processes were started", got)
	}
	thaw()
	w.slot("d", "up again", func(s supervisor.SlotStatus) bool { return s.State == "up" && s.PID != pid })
	if alive(pid) {
		t.Error("it lives")
	}
}

// freeze makes a process one that no signal reaches, with the freezer of cgroup v1,
// until it is thawed.
func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	dir, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "sovereign-test-")
	if err != nil {
		t.Skipf("no freezer: %v", err)
	}
	put := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	put("cgroup.procs", fmt.Sprint(pid))
	put("freezer.state", "FROZEN")
	thaw = sync.OnceFunc(func() { put("freezer.state", "THAWED") })
	t.Cleanup(func() { thaw(); os.Remove(dir) })
	return thaw
}

// C12, P4.5, P4.9 after a crash: a leftover that does not die keeps its slot from
// starting, and no other; it keeps its lease and its message too, which no other
// replica gets, whether it is found by its record or by its identity. Once it is
// gone its attempt is lost, the message is handed out, and the slot starts. Have
// Reconcile not told of it, or its mark not mapped to its slot, and this fails.
func TestKilledSupervisor_StuckLeftover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a kill may take, twice")
	}
	dir, pids := t.TempDir(), newFifo(t)
	task := `test $SOVEREIGN_ATTEMPT -gt 1 -o "$SOVEREIGN_SUBJECT" = "subject of quick" && exit 0; echo $$ >"$PIDS"; exec sleep 1000`
	env := func(a *config.Actor) { a.Env, a.Replicas = map[string]string{"PIDS": pids.path}, 2 }
	actors := []config.Actor{
		shell("recorded", config.Task, task, env),
		shell("marked", config.Task, task, env),
		shell("manual", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo $$ >"$PIDS"; exec sleep 1000`,
			func(a *config.Actor) {
				a.Env = map[string]string{"PIDS": pids.path}
				a.Claim, a.OnWorkerLost = config.Claim{TTL: 15 * time.Second, Renew: config.Manual}, config.ParkMessage
			}),
		shell("other", config.Daemon, `exec sleep 1000`),
	}
	ids := map[string]mailbox.ID{}
	for _, actor := range []string{"recorded", "marked", "manual"} {
		ids[actor] = sendTo(t, dir, actors, actor, "")
	}
	s := supervise(t, dir, nil, actors...)
	s.recorded("recorded", "marked", "manual", "other")
	var frozen []int
	var thaw []func()
	for range ids {
		frozen = append(frozen, pids.pid())
		thaw = append(thaw, freeze(t, frozen[len(frozen)-1]))
	}
	s.kill()
	for _, path := range live(t, dir, "marked") {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t, dir, actors...).run()
	slots := map[string]int{}
	for actor := range ids {
		slots[actor] = w.anySlot(3*patience, // its start waits for the kills
			actor, "stuck", func(s supervisor.SlotStatus) bool {
				return s.State == "stuck" && strings.Contains(s.Why, "could not kill pid")
			}).Slot
		if actor != "manual" { // the other replica is at work beside it
			if d := w.await(w.send(actor, "quick")); d.State != mailbox.Done {
				t.Errorf("%s: %+v", actor, d)
			}
		}
	}
	w.state("other", "up")
	held, err := w.box.Leases().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for actor, id := range ids {
		d, err := w.box.Show(t.Context(), id)
		if err != nil || d.State != mailbox.Claimed || len(d.Receipts) != 0 {
			t.Errorf("%s: its message is %s after %d receipts, %v", actor, d.State, len(d.Receipts), err)
		}
		slot := fence.Slot{Actor: actor, Number: slots[actor]}
		if !slices.ContainsFunc(held, func(r fence.Record) bool { return r.Slot == slot }) {
			t.Errorf("the lease of %s is gone", slot)
		}
		if _, err := w.box.Leases().Reset(t.Context(), slot); !refusal.Has(err, refusal.ActorLeaseHeld) {
			t.Errorf("its lease was reset: %v", err)
		}
	}
	for _, pid := range frozen {
		if !alive(pid) {
			t.Error("it was not frozen, and this test shows nothing")
		}
	}
	if path := filepath.Join(dir, "runs", "live", fmt.Sprintf("recorded.%d", slots["recorded"])); !slices.Contains(live(t, dir, "recorded"), path) {
		t.Errorf("the record of what lives is gone: %s", path)
	}
	for _, f := range thaw {
		f()
	}
	for actor, id := range ids {
		want, starts := mailbox.Done, 2
		if actor == "manual" {
			want, starts = mailbox.Parked, 1
		}
		if d := w.await(id); d.State != want || len(d.Receipts) != starts || d.Receipts[0].Category != mailbox.CategoryWorkerLost {
			t.Errorf("%s: %s, %+v", actor, d.State, d.Receipts)
		}
		w.event(0, "unstuck", kind(actor, "unstuck"))
	}
	for _, pid := range frozen {
		if alive(pid) {
			t.Error("it lives beside its successor")
		}
	}
}

// live are the records of the processes of an actor.
func live(t *testing.T, dir, actor string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "runs", "live", actor+".*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
