package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
)

// chain is a leader that has started a process between, which has started one that
// hides: it left the session, ignores SIGTERM and has a child of its own. The one
// between says its number, and so do the last two.
const chain = `sh -c 'setsid sh -c "trap \"\" TERM; sleep 1000 & echo \$\$ >\"\$PIDS\"; echo \$! >\"\$PIDS\"; wait" & echo $$ >"$BETWEEN"; wait' &
	trap "exit 0" TERM; while :; do wait; sleep 1000 & done`

// A5: each process of a chain can be killed, and none that it leaves is lost sight of.
// The one between dies: what hung from it still belongs to the slot, and is ended
// with it. The leader dies: all of it is dead before there is a successor. Start that
// once the leader has ended and this fails.
func TestChain_EachLinkCanDie(t *testing.T) {
	for _, link := range []string{"between", "leader"} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			pids, between := newFifo(t), newFifo(t)
			d := "d-" + link // the host has one cgroup for each name
			w := run(t, shell(d, config.Daemon, chain, func(a *config.Actor) {
				a.Env = map[string]string{"PIDS": pids.path, "BETWEEN": between.path}
				a.Stop.Timeout = 200 * time.Millisecond
			}))
			middle, hidden, child := between.pid(), pids.pid(), pids.pid()
			leader := w.state(d, "up").PID
			if link == "between" {
				kill(t, middle)
				if !alive(leader) || !alive(hidden) || !alive(child) {
					t.Error("the others are to live")
				}
				if err := w.sup.Stop(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				w.state(d, "stopped")
			} else {
				kill(t, leader)
				next := between.pid() // the successor has come as far as that
				if alive(middle) || alive(hidden) || alive(child) {
					t.Error("something lives beside the successor")
				}
				pids.pid()
				pids.pid()
				if s := w.state(d, "up"); s.PID == leader || next == middle {
					t.Errorf("the same again: %+v", s)
				}
				return
			}
			for _, pid := range []int{leader, middle, hidden, child} {
				if alive(pid) {
					t.Errorf("%d is left", pid)
				}
			}
		})
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A3: the supervisor is killed, and its successor starts from what it has recorded: of
// the daemon that ran there is one again, and the old one with all that it started
// is dead by then; the one that an operator had stopped stays stopped. Start before
// the leftovers are ended and this fails.
func TestKilledSupervisor_Daemon(t *testing.T) {
	dir, pids := t.TempDir(), newFifo(t)
	lock := filepath.Join(t.TempDir(), "lock")
	// The lock is held by the whole tree, for each process of it has the descriptor.
	daemon := shell("d", config.Daemon, `exec 9>"$LOCK"; flock -n 9 || echo overlap >"$PIDS"
		setsid sh -c 'trap "" TERM; setsid sleep 1000 & echo $! >"$PIDS"; sleep 1000' & echo $$ >"$PIDS"; wait`,
		func(a *config.Actor) { a.Env = map[string]string{"LOCK": lock, "PIDS": pids.path} })
	still := shell("still", config.Daemon, `echo still >"$PIDS"; sleep 1000`,
		func(a *config.Actor) { a.Env = map[string]string{"PIDS": pids.path} })

	w := open(t, dir, daemon, still).run()
	for range 3 {
		pids.word()
	}
	if err := w.sup.Stop(t.Context(), "still"); err != nil {
		t.Fatal(err)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	first := supervise(t, dir, nil, daemon, still)
	old := []int{pids.pid(), pids.pid()}
	first.kill()

	supervise(t, dir, nil, daemon, still).line("d started")
	for range 2 {
		if word := pids.word(); strings.Trim(word, "0123456789") != "" {
			t.Errorf("the new daemon said %q", word)
		}
	}
	for _, pid := range old {
		if alive(pid) {
			t.Errorf("%d of the first life lives beside the second", pid)
		}
	}
}

// F10: a process that waits for another one to be ready is restarted by many at one
// time, and is one process in the end.
func TestRestart_ConcurrentWhileItWaits(t *testing.T) {
	said, gate := newFifo(t), newFifo(t)
	mkfifo(t, gate.path+".go")
	w := run(t,
		shell("first", config.Worker, `echo up >"$GATE"; read -r line <"$GATE.go"; echo '{"Method":"ready"}' >&3; sleep 1000`, func(a *config.Actor) {
			a.Env = map[string]string{"GATE": gate.path}
			a.Ready = &config.Ready{Notify: true, Timeout: patience}
		}),
		shell("d", config.Daemon, `echo $$ >"$SAID"; exec sleep 1000`, func(a *config.Actor) {
			a.Env = map[string]string{"SAID": said.path}
			a.After = []string{"first"}
		}))
	gate.word()
	w.state("d", "waiting")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := w.sup.Restart(ctx, "d"); err != nil {
				t.Error(err)
			}
		})
	}
	open := make(chan error, 1)
	go func() { open <- os.WriteFile(gate.path+".go", []byte("go\n"), 0o600) }() // once it is read
	wg.Wait()
	if err := <-open; err != nil {
		t.Fatal(err)
	}
	s := w.state("d", "up")
	if n := len(w.all("d", "started")) - len(w.all("d", "exited")); n != 1 || !alive(s.PID) {
		t.Errorf("%d processes are on record as running, %+v", n, s)
	}
}
