package supervisor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

func init() { roles["supervisor"] = superviseUntilKilled }

// superviseUntilKilled is a whole supervisor on the store TEST_DIR, with the
// actors TEST_ACTORS. It runs until it is killed.
func superviseUntilKilled() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var actors []config.Actor
	check(json.Unmarshal([]byte(os.Getenv("TEST_ACTORS")), &actors))
	host, err := process.NewHost(nil)
	check(err)
	dir := os.Getenv("TEST_DIR")
	db, err := bolt.Open(dir, bolt.Options{})
	check(err)
	box, err := mailbox.Open(context.Background(), db, fence.New(db, func() fence.Instant { return fence.Instant(db.Now()) }), mailbox.Options{})
	check(err)
	var onRecord []mailbox.Actor
	for _, a := range actors {
		onRecord = append(onRecord, recorded(a))
	}
	check(box.SetActors(context.Background(), onRecord))
	check(box.Load(context.Background()))
	rec := recovery.New(box, recovery.NewWorkspaces(dir), nil)
	wire := &wire{box: box}
	wire.sup = supervisor.New(actors, box, rec, host, supervisor.Options{Data: dir, Socket: filepath.Join(dir, "worker.sock"), Attacher: wire, Environ: os.Environ(),
		Log: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}}))})
	go func() { check(box.Run(context.Background())) }()
	go func() { check(rec.Run(context.Background())) }()
	go func() { // prints the journal
		for seq := uint64(0); ; {
			evs, more, err := box.Events(context.Background(), seq, 0)
			check(err)
			for _, ev := range evs {
				seq = ev.Seq
				fmt.Println(ev.Actor, ev.Kind, ev.Text)
			}
			if len(evs) == 0 {
				<-more
			}
		}
	}()
	check(wire.sup.Run(context.Background()))
}

// A supervised is a supervisor in a process of its own, to be killed.
type supervised struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
	err bytes.Buffer
	out chan string // its journal and its log, line by line; closed at its end
}

func supervise(t *testing.T, dir string, env []string, actors ...config.Actor) *supervised {
	t.Helper()
	text, err := json.Marshal(actors)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervised{t: t, dir: dir, cmd: exec.Command(os.Args[0]), out: make(chan string, 10000)}
	s.cmd.Env = append(os.Environ(), append(env, "TEST_ROLE=supervisor", "TEST_DIR="+dir, "TEST_ACTORS="+string(text), "GORACE=atexit_sleep_ms=0")...)
	s.cmd.Stderr = &s.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the supervisor
		defer close(s.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.out <- lines.Text()
		}
	}()
	t.Cleanup(s.kill)
	return s
}

// kill is SIGKILL, and returns when the supervisor is gone.
func (s *supervised) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.awaitLock()
	if s.err.Len() > 0 {
		s.t.Errorf("the supervisor said: %s", s.err.String())
	}
}

// awaitLock waits until the store's lock is free: a child that was being forked when
// the supervisor was killed holds a copy of it until it executes or dies.
func (s *supervised) awaitLock() {
	f, err := os.OpenFile(filepath.Join(s.dir, bolt.LockFile), os.O_RDWR, 0)
	if err != nil {
		return // it was killed before it had a store
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		s.t.Error(err)
	}
}

// recorded waits until each of actors has a process on record, which a process can be
// ahead of with what it says.
func (s *supervised) recorded(actors ...string) {
	s.t.Helper()
	for len(actors) > 0 {
		line := s.line(`msg="process started" actor=`)
		actors = slices.DeleteFunc(actors, func(actor string) bool { return strings.Contains(line, "actor="+actor+" ") })
	}
}

// line is the next line of its journal, or of its log, that starts with prefix.
func (s *supervised) line(prefix string) string {
	s.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-s.out:
			if !ok {
				s.t.Fatalf("the supervisor ended before %q", prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-limit:
			s.t.Fatalf("the supervisor never said %q", prefix)
		}
	}
}

// sendTo makes a message durable in a store that no supervisor has open.
func sendTo(t *testing.T, dir string, actors []config.Actor, to, body string) mailbox.ID {
	t.Helper()
	w := open(t, dir, actors...)
	id := w.send(to, body)
	if err := w.box.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

// A1, A2, A7, A9, A10, P4.2, P4.9: the supervisor is killed while a task and its
// escaped grandchild work. The next one ends both before it hands the message
// out again, and records the attempt as worker_lost, exactly once. Mistake 10: after a
// restart old children worked on beside new ones, under tokens that were given twice.
func TestKilledSupervisor_Task(t *testing.T) {
	dir, pids := t.TempDir(), newFifo(t)
	seen := filepath.Join(t.TempDir(), "seen")
	// The second attempt looks whether anything of the first one lives.
	script := `if test -e "$SEEN"; then
			for pid in $(cat "$SEEN"); do grep -qs '^State:.[^ZX]' /proc/$pid/status && echo "overlap $pid"; done
			echo done; exit 0
		fi
		trap '' TERM
		setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & escaped=$!
		echo $$ $escaped >"$SEEN"; echo $escaped >"$PIDS"; while :; do sleep 1; done`
	actors := []config.Actor{shell("t", config.Task, script, func(a *config.Actor) {
		a.Env = map[string]string{"SEEN": seen, "PIDS": pids.path}
	})}
	id := sendTo(t, dir, actors, "t", "")
	s := supervise(t, dir, nil, actors...)
	escaped := pids.pid()
	s.kill()

	w := open(t, dir, actors...).run()
	d := w.await(id)
	if d.State != mailbox.Done || string(d.Result) != "done\n" {
		t.Errorf("%s, %q", d.State, d.Result)
	}
	if len(d.Receipts) != 2 || d.Receipts[0].Category != mailbox.CategoryWorkerLost || d.Receipts[1].Token <= d.Receipts[0].Token {
		t.Errorf("%+v", d.Receipts)
	}
	if alive(escaped) {
		t.Errorf("%d outlived two supervisors", escaped)
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, "runs", "m*")); len(entries) != 0 {
		w.state("t", "idle")
		if entries, _ = filepath.Glob(filepath.Join(dir, "runs", "m*")); len(entries) != 0 {
			t.Errorf("workspaces are left: %q", entries)
		}
	}
}

// A worker of a killed supervisor: its claim is recovered as worker_lost, the journal
// says that it died while nobody looked (A10, A11).
func TestKilledSupervisor_Worker(t *testing.T) {
	dir, said := t.TempDir(), newFifo(t)
	actors := []config.Actor{shell("w", config.Worker, `echo '{"Method":"claim"}' >&3; read -r word id token body <&3; echo $$ >"$SAID"; sleep 1000`,
		func(a *config.Actor) {
			a.Env = map[string]string{"SAID": said.path}
			a.OnWorkerLost = config.ParkMessage
		})}
	id := sendTo(t, dir, actors, "w", "")
	s := supervise(t, dir, nil, actors...)
	pid := said.pid()
	s.kill()
	w := open(t, dir, actors...).run()
	d := w.await(id)
	if d.State != mailbox.Parked || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryWorkerLost {
		t.Errorf("%s, %+v", d.State, d.Receipts)
	}
	if alive(pid) {
		t.Error("the worker lives")
	}
	w.event(0, "recovered", kind("w", protocol.EventRecovered))
	w.state("w", "up")
}

// A7, P4.9: the supervisor is killed while it probes whether a process is ready. What has
// escaped from the probe, which has no identity, is ended by the next one too. Give the
// probe no mark, or look only for those of processes, and this fails.
func TestKilledSupervisor_Probe(t *testing.T) {
	dir, pids := t.TempDir(), newFifo(t)
	actors := []config.Actor{shell("d", config.Daemon, "exec sleep 1000", func(a *config.Actor) {
		a.Env = map[string]string{"PIDS": pids.path}
		a.Ready = &config.Ready{Timeout: time.Minute, Exec: []string{"/bin/sh", "-c",
			`test -z "$SOVEREIGN_PROCESS" || exit 0
			setsid sh -c 'trap "" TERM; echo $$ >"$PIDS"; while :; do sleep 1; done' & sleep 1000`}}
	})}
	s := supervise(t, dir, nil, actors...)
	escaped := pids.pid()
	s.kill()

	actors[0].Ready = nil
	w := open(t, dir, actors...).run()
	w.state("d", "up")
	if alive(escaped) {
		t.Errorf("%d outlived two supervisors", escaped)
	}
}

// A13, P4.4: supervisors that are killed one after the other, also while they
// recover, leave one receipt for each start, and the last one gets on.
func TestKilledSupervisor_AgainAndAgain(t *testing.T) {
	dir, said := t.TempDir(), newFifo(t)
	actors := []config.Actor{shell("t", config.Task, `echo $SOVEREIGN_ATTEMPT >"$SAID"; test $SOVEREIGN_ATTEMPT -gt 4 && exit 0; sleep 1000`,
		func(a *config.Actor) { a.Env = map[string]string{"SAID": said.path}; a.Retry.MaxAttempts = 100 })}
	id := sendTo(t, dir, actors, "t", "")
	for n := range 8 {
		s := supervise(t, dir, nil, actors...)
		if n%2 == 0 {
			if word := said.word(); word == "5" {
				s.kill()
				break
			}
		}
		s.kill() // at odd turns somewhere in its start
	}
	w := open(t, dir, actors...).run()
	d := w.await(id)
	if d.State != mailbox.Done || len(d.Receipts) != d.Attempt {
		t.Fatalf("%s after %d starts, %d receipts", d.State, d.Attempt, len(d.Receipts))
	}
	for n, r := range d.Receipts {
		if r.Attempt != n+1 || (r.Category == mailbox.CategoryCompleted) != (n+1 == d.Attempt) {
			t.Errorf("%+v", r)
		}
	}
}

// B1, B2, B4, report 4.9 #83: a record whose number belongs to a stranger now, or is of another boot,
// harms nobody.
func TestLeftovers_StrangersLive(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip("no /proc")
	}
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	dir := t.TempDir()
	live := filepath.Join(dir, "runs", "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, id process.Identity) {
		text, _ := json.Marshal(map[string]any{"process": string(fence.NewProcess()), "identity": id})
		if err := os.WriteFile(filepath.Join(live, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pid := stranger.Process.Pid
	write("d.1", process.Identity{BootID: strings.TrimSpace(string(boot)), PID: pid, StartTime: 1, PIDNamespace: namespace})
	write("d.2", process.Identity{BootID: "another", PID: pid, StartTime: startTime(t, pid), PIDNamespace: namespace})
	write("d.3", process.Identity{BootID: strings.TrimSpace(string(boot)), PID: pid, StartTime: startTime(t, pid), PIDNamespace: "pid:[1]"})
	if err := os.WriteFile(filepath.Join(live, "d.4"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, dir, shell("d", config.Daemon, "sleep 1000", func(a *config.Actor) { a.Replicas = 4 })).run()
	w.state("d", "up")
	if !alive(pid) {
		t.Error("a stranger was killed")
	}
}

// P5: a record that a kill or a power cut left half written, or of zeros, is set aside
// and removed; it is no reason to end, or to recover, nothing. Return it as an
// error and this fails.
func TestLeftovers_DamagedRecords(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, "runs", "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"d.1": "", "d.2": strings.Repeat("\x00", 1024), "d.3": `{"process":"proc_12`, "d.4": "{}", "odd": "{}"} {
		if err := os.WriteFile(filepath.Join(live, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t, dir, shell("d", config.Daemon, "sleep 1000"))
	var log bytes.Buffer
	left, err := supervisor.EndLeftovers(t.Context(), theHost, w.box.Leases(), dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || left.Ended != 0 || len(left.Stuck) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if entries, err := os.ReadDir(live); err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
	if got := strings.Count(log.String(), "damaged record"); got != 5 {
		t.Errorf("%d were told of: %s", got, log.String())
	}
	w.run() // so that it is closed
}

// P4.9: where it cannot be known whether something of a dead supervisor lives, nothing
// is recovered and nothing started: run says why and ends, and the next start
// finds all as it was. Go on after an error of EndLeftovers, or drop the record
// all the same, and this fails.
func TestLeftovers_NotKnownNotStarted(t *testing.T) {
	// A cgroup that cannot be opened: it is a file. Its folder is in one of the test's own,
	// for what lies empty beside the folders of living supervisors, they remove.
	own, err := os.MkdirTemp("/sys/fs/cgroup/unified", "test-of-sovereign-")
	if err != nil {
		t.Skipf("cgroup v2 is not writable: %v", err)
	}
	defer os.Remove(own)
	groups := filepath.Join(own, "sovereign-dead")
	if err := os.Mkdir(groups, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(groups)
	dir := t.TempDir()
	w := open(t, dir, shell("t", config.Task, "true"))
	id, slot, lost := w.send("t", ""), fence.Slot{Actor: "t", Number: 1}, fence.NewProcess()
	if _, _, err := w.box.StartTask(t.Context(), slot, lost, time.Minute); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "runs", "live", "t.1")
	text, err := json.Marshal(map[string]string{"process": string(lost), "cgroup": filepath.Join(groups, "cgroup.procs")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(record), 0o700), os.WriteFile(record, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.run()
	select {
	case err := <-w.ended:
		w.ended <- nil // as far as the clean-up is concerned
		if r := refusal.Of(err); r == nil || r.Category != refusal.Failed || r.Next == "" {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if d, err := w.box.Show(t.Context(), id); err != nil || d.State != mailbox.Claimed || len(d.Receipts) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if held, err := w.box.Leases().List(t.Context()); err != nil || len(held) != 1 {
		t.Errorf("%+v, %v", held, err)
	}
	if _, err := os.Stat(record); err != nil {
		t.Error(err)
	}
}

func startTime(t *testing.T, pid int) (n uint64) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if _, err := fmt.Sscan(rest[19], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// H2: where descriptors run out nevertheless a supervisor says so, and those that run are
// not harmed.
func TestTooFewDescriptors(t *testing.T) {
	dir, said, told := t.TempDir(), newFifo(t), newFifo(t)
	ready := &config.Ready{Exec: []string{"/bin/true"}, Timeout: patience}
	good := shell("good", config.Daemon, "echo up >"+said.path+"; sleep 1000", func(a *config.Actor) { a.Ready = ready })
	other := shell("other", config.Daemon, "echo $$ >"+told.path+"; exec sleep 1000", func(a *config.Actor) {
		a.Ready, a.After = ready, []string{"good"}
		a.Backoff.Initial, a.Backoff.Max = time.Hour, time.Hour
		a.Intensity = config.Intensity{Restarts: 1, Within: time.Hour} // its end alone
	})
	s := supervise(t, dir, nil, good, other)
	said.word()
	pid, err := strconv.Atoi(told.word())
	if err != nil {
		t.Fatal(err)
	}
	s.line("other ready") // and so is good: what was open for their starts is closed
	if err := leaveFiles(s.cmd.Process.Pid, 1); err != nil {
		t.Skip(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	line := s.line("other spawn_failed")
	if !strings.Contains(line, "EMFILE") && !strings.Contains(line, "too many open files") {
		t.Errorf("%q", line)
	}
	// It is the supervisor's lack, and no reason to give the actor up. Count it against
	// the intensity and this fails.
	if line := s.line("other "); !strings.Contains(line, "other restarting") {
		t.Errorf("after a start for which there were no descriptors: %q", line)
	}
	if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the supervisor is gone: %v", err)
	}
	s.kill()
	w := open(t, dir, good, other)
	defer func() { _ = w.box.Close(); _ = w.db.Close() }()
	if got := len(w.all("good", "exited")); got != 0 {
		t.Errorf("the good one ended %d times", got)
	}
}
