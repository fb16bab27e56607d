package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
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
	return m.Store.Update(ctx, fn)
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
		select {
		case <-store.asked:
		case <-time.After(patience):
			t.Fatal("the end was not tried")
		}
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

// P4.10: a write whose outcome is not known stops the supervisor: its children are
// killed, and it says why.
func TestOutcomeUnknown_Stops(t *testing.T) {
	pids := newFifo(t)
	said := map[string]string{"PIDS": pids.path}
	w, store := openMoody(t,
		shell("d", config.Daemon, `trap '' TERM; echo $$ >"$PIDS"; while :; do sleep 1; done`, func(a *config.Actor) { a.Env = said; a.Stop.Timeout = time.Hour }),
		shell("t", config.Task, `true`))
	pid := pids.pid()
	w.send("t", "")
	w.event(0, "completed", kind("t", mailbox.EventCompleted))
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

// C12 after a crash: a leftover that does not die keeps its slot from starting, and
// no other; once it is gone the slot starts.
func TestKilledSupervisor_StuckLeftover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a kill may take")
	}
	dir, pids := t.TempDir(), newFifo(t)
	actors := []config.Actor{
		shell("d", config.Daemon, `echo $$ >"$PIDS"; exec sleep 1000`, func(a *config.Actor) { a.Env = map[string]string{"PIDS": pids.path} }),
		shell("other", config.Daemon, `exec sleep 1000`),
	}
	s := supervise(t, dir, nil, actors...)
	pid := pids.pid()
	s.line("d started")
	s.line("other started")
	thaw := freeze(t, pid)
	s.kill()
	w := open(t, dir, actors...).run()
	st := w.slotWithin(2*patience, // its start waits for the kill
		"d", "stuck", func(s supervisor.SlotStatus) bool { return s.State == "stuck" })
	if !strings.Contains(st.Why, fmt.Sprint(pid)) {
		t.Errorf("%+v", st)
	}
	w.state("other", "up")
	if !alive(pid) {
		t.Error("it was not frozen, and this test shows nothing")
	}
	thaw()
	w.state("d", "up")
	if alive(pid) {
		t.Error("it lives beside its successor")
	}
}
