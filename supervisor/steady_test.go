package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
)

// D5: restarts cost nothing that stays: descriptors, goroutines, threads and memory are
// the same after hundreds of them, in each mode. Keep a finished child in living, or a
// pipe in its log, and this fails. The long form is
//
//	TEST_RESTARTS=10000 go test ./supervisor -run Restarts_LeaveNothing -timeout 1h -v
func TestRestarts_LeaveNothing(t *testing.T) {
	for _, mode := range []config.Mode{config.Daemon, config.Worker, config.Task} {
		t.Run(string(mode), func(t *testing.T) {
			w := run(t, shell("d", mode, "echo out; echo err >&2; exit 1", func(a *config.Actor) {
				a.Backoff = config.Backoff{}
				a.Intensity.Restarts = 1 << 30
				a.Retry = config.Retry{MaxAttempts: 1 << 30}
			}))
			if mode == config.Task {
				w.send("d", "")
			}
			n := 150
			if v, err := strconv.Atoi(os.Getenv("TEST_RESTARTS")); err == nil {
				n = v
			}
			at := w.ends(0, "d", 50)
			w.log.clear()
			fds, goroutines, held, before := countFds(t), runtime.NumGoroutine(), inUse(), threads(t)
			// The store holds in memory what it has yet to fold into its tree, about a KiB
			// for each restart: the memory goes up and down with that, some MiB in some
			// thousand restarts. What stays is what is left at its lowest.
			var low [2]uint64
			for k := 1; k < n/50; k++ {
				at = w.ends(at, "d", 50)
				w.log.clear()
				half := &low[2*k/(n/50)]
				if now := inUse(); *half == 0 || now < *half {
					*half = now
				}
			}
			// What one process needs may be there or not at either moment, and what the
			// runtime starts when the machine is busy; a leak is one for each of the ends.
			if got := countFds(t); got > fds+30 {
				t.Errorf("%d descriptors after 50 restarts, %d after %d", fds, got, n)
			}
			if got := runtime.NumGoroutine(); got > goroutines+30 {
				t.Errorf("%d goroutines after 50 restarts, %d after %d", goroutines, got, n)
			}
			if got := threads(t); got > before+30 {
				t.Errorf("%d threads after 50 restarts, %d after %d", before, got, n)
			}
			t.Logf("%d restarts: at the lowest %d KiB in use in the first half, %d in the second; %d after 50", n, low[0]>>10, low[1]>>10, held>>10)
			if low[1] > max(held, low[0])+1<<20 {
				t.Errorf("%d KiB in use after 50 restarts, %d at the lowest in the second half of %d", held>>10, low[1]>>10, n)
			}
		})
	}
}

// ends waits until n processes of an actor have ended since the event seq, by the
// journal, and returns the last one's event.
func (w *world) ends(seq uint64, actor string, n int) uint64 {
	w.t.Helper()
	seen := 0
	return w.event(seq, fmt.Sprintf("%d ends", n), func(ev mailbox.Event) bool {
		if ev.Actor == actor && (ev.Kind == "exited" || ev.Kind == protocol.EventFailed) {
			seen++
		}
		return seen == n
	}).Seq
}

// inUse is the memory of what lives, in bytes.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a pool lets go of
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func countFds(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(entries)
}

// G1: a child is not held up by a log that cannot be written, and what is lost is
// counted and shown.
func TestLog_CannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "logs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	actors := []config.Actor{shell("t", config.Task, `yes | head -c 20000000 >&2; echo done`)}
	w := open(t, dir, actors...).run()
	if d := w.await(w.send("t", "")); d.State != mailbox.Done || string(d.Result) != "done\n" {
		t.Errorf("%s, %q", d.State, d.Result)
	}
	if s := w.state("t", "idle"); s.LogLost == 0 {
		t.Errorf("nothing was said to be lost: %+v", s)
	}
}

// L7: after a change of user the child has that user's groups and HOME, and a
// workspace of its own that it can reach.
func TestTask_OtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
	w := openReachable(t, shell("t", config.Task, `id -u; id -G; echo $HOME $USER $LOGNAME $SHELL; cd "$SOVEREIGN_WORKSPACE" && touch mine && stat -c '%u %a' .; cat /dev/stdin; echo log >/dev/stderr`,
		func(a *config.Actor) { a.User = "nobody"; a.Cwd = "/" })).run()
	d := w.await(w.send("t", "body\n"))
	lines := strings.Split(string(d.Result), "\n")
	if d.State != mailbox.Done || len(lines) != 6 {
		t.Fatalf("%s, %q, %+v", d.State, d.Result, d.Receipts)
	}
	nobody := lines[0]
	if nobody == "0" || strings.Contains(" "+lines[1]+" ", " 0 ") || strings.Contains(lines[2], "/root") || !strings.Contains(lines[2], " nobody nobody ") {
		t.Errorf("%q", lines)
	}
	if lines[3] != nobody+" 700" || lines[4] != "body" {
		t.Errorf("%q", lines)
	}
	w.state("t", "idle")
	if left, _ := filepath.Glob(filepath.Join(w.dir, "runs.*", "*")); len(left) != 0 {
		t.Errorf("workspaces are left: %q", left)
	}
}

// L7: group without user: the supervisor's own user, in that group and no further.
func TestTask_OtherGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change groups")
	}
	w := openReachable(t, shell("t", config.Task, `id -u; id -g; id -G`, func(a *config.Actor) { a.Group = "65534"; a.Cwd = "/" })).run()
	if d := w.await(w.send("t", "")); d.State != mailbox.Done || string(d.Result) != "0\n65534\n65534\n" {
		t.Errorf("%s, %q, %+v", d.State, d.Result, d.Receipts)
	}
}

// openReachable is open in a folder that other users can pass through.
func openReachable(t *testing.T, actors ...config.Actor) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "sovereign-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, actors...)
}

// P4.3 to P4.5: workers complete, fail, die and are killed from outside at random
// moments; however it races, each start has one receipt, and a message that is done
// was completed by its last one.
func TestStorm_OneReceiptPerStart(t *testing.T) {
	w := run(t, shell("w", config.Worker, `
		while :; do
			echo '{"Method":"claim"}' >&3
			read -r word id token body <&3 || exit 0
			case $word in claimed) ;; drain) exit 0 ;; *) continue ;; esac
			echo "{\"Method\":\"complete\",\"ID\":\"$id\",\"Token\":$token}" >&3
			case $(($$ % 3)) in 0) kill -KILL $$ ;; 1) exit 3 ;; esac
			read -r answer <&3
		done`, func(a *config.Actor) {
		a.Replicas = 3
		a.Backoff = config.Backoff{}
		a.Intensity.Restarts = 1 << 30
		a.Retry = config.Retry{MaxAttempts: 1 << 30}
	}))
	var ids []mailbox.ID
	for n := range 60 {
		ids = append(ids, w.send("w", strconv.Itoa(n)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var chaos sync.WaitGroup
	chaos.Go(func() {
		for ctx.Err() == nil {
			changed := w.sup.Changes()
			_ = w.sup.Signal(ctx, "w", "KILL")
			select {
			case <-changed:
			case <-ctx.Done():
			}
			select { // which may have been the last for good
			case <-w.sup.Changes():
			case <-ctx.Done():
			}
		}
	})
	chaos.Go(func() {
		for range 3 {
			_ = w.sup.Restart(ctx, "w")
		}
		cancel()
	})
	chaos.Wait()
	for _, id := range ids {
		d := w.await(id)
		if len(d.Receipts) != d.Attempt {
			t.Errorf("%s: %d starts, %d receipts", id, d.Attempt, len(d.Receipts))
		}
		for n, r := range d.Receipts {
			if completed := r.Category == mailbox.CategoryCompleted; r.Attempt != n+1 || completed != (n+1 == d.Attempt) || completed != r.ByWorker {
				t.Errorf("%s: %+v", id, r)
			}
		}
	}
}

// No OS thread, and little memory, for each child: a hundred daemons.
func TestManyChildren_NoThreads(t *testing.T) {
	before := threads(t)
	n := 100
	if v, err := strconv.Atoi(os.Getenv("TEST_CHILDREN")); err == nil {
		n = v
	}
	w := run(t, shell("d", config.Daemon, "exec sleep 1000", func(a *config.Actor) { a.Replicas = n }))
	began := time.Now()
	for {
		changed := w.sup.Changes()
		up := 0
		for _, s := range w.sup.Status()[0].Slots {
			if s.State == "up" {
				up++
			}
		}
		if up == n {
			break
		}
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatalf("%d of %d are up", up, n)
		}
	}
	t.Logf("%d up after %s", n, time.Since(began))
	if got := threads(t); got > before+40 {
		t.Errorf("%d threads without children, %d with %d", before, got, n)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc")
	}
	_, rest, _ := bytes.Cut(status, []byte("\nThreads:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
