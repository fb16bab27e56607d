package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/supervisor"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// roles are what the test binary does when it is run again as a child.
var roles = map[string]func(){}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv("TEST_ROLE")]; role != nil {
		role()
		return
	}
	host, err := process.NewHost(nil)
	if err != nil {
		panic(err)
	}
	theHost = host
	code := m.Run()
	if err := host.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// theHost is the one that a program has.
var theHost *process.Host

// patience is how long a test waits for what has to happen: a bound for a broken
// product, not a wait, and long enough for a machine that is busy with other things.
const patience = time.Minute

// world is one store with one supervisor at work on it.
type world struct {
	t    testing.TB
	dir  string
	db   *bolt.DB
	box  *mailbox.Box
	rec  *recovery.Recovery
	sup  *supervisor.Supervisor
	wire *wire
	log  *lines

	cancel context.CancelCauseFunc
	ended  chan error
	parts  sync.WaitGroup
	once   sync.Once
	result error
}

// shell is an actor of one shell command.
func shell(name string, mode config.Mode, script string, change ...func(*config.Actor)) config.Actor {
	a := config.Actor{
		Name: name, Command: []string{"/bin/sh", "-c", script}, Mode: mode, Replicas: 1, Cwd: os.TempDir(), Umask: -1,
		Restart: config.Always, Backoff: config.Backoff{Initial: 10 * time.Millisecond, Max: time.Second, Factor: 2, Jitter: 0.2},
		Intensity: config.Intensity{Restarts: 5, Within: time.Minute}, Stop: config.Stop{Signal: "TERM", Timeout: 10 * time.Second},
		LeaseTTL: 30 * time.Second, Timeout: 10 * time.Minute, Claim: config.Claim{TTL: time.Minute, Renew: config.Auto},
		Retry:        config.Retry{MaxAttempts: 5, Backoff: config.Backoff{Initial: time.Millisecond, Max: time.Second, Factor: 2}},
		OnWorkerLost: config.RetryMessage, Inbox: config.Inbox{Limit: 100000, MaxBody: 1 << 20}, Reclaim: config.ReclaimAlways,
		Log: config.Log{File: true, MaxSize: 10 << 20, Keep: 3},
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func recorded(a config.Actor) mailbox.Actor {
	return mailbox.Actor{Name: a.Name, Mailbox: a.Mode != config.Daemon, ClaimTTL: a.Claim.TTL, Timeout: a.Timeout, Progress: a.ProgressTimeout,
		Auto: a.Mode == config.Task || a.Claim.Renew == config.Auto,
		Retry: mailbox.Retry{MaxAttempts: a.Retry.MaxAttempts, Initial: a.Retry.Initial, Max: a.Retry.Max,
			Factor: a.Retry.Factor, Jitter: a.Retry.Jitter},
		Park: a.OnWorkerLost == config.ParkMessage, Limit: a.Inbox.Limit, MaxBody: a.Inbox.MaxBody, Reclaim: string(a.Reclaim)}
}

// open opens the store in dir.
func open(t testing.TB, dir string, actors ...config.Actor) *world {
	t.Helper()
	return openWith(t, dir, func(st store.Store) store.Store { return st }, actors...)
}

// openWith is open with something between the mailbox and the store.
func openWith(t testing.TB, dir string, wrap func(store.Store) store.Store, actors ...config.Actor) *world {
	t.Helper()
	w := &world{t: t, dir: dir, log: &lines{}, ended: make(chan error, 1)}
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	st := wrap(db)
	leases := fence.New(st, func() fence.Instant { return fence.Instant(db.Now()) })
	if w.box, err = mailbox.Open(t.Context(), st, leases, mailbox.Options{Log: logger}); err != nil {
		t.Fatal(err)
	}
	var onRecord []mailbox.Actor
	for _, a := range actors {
		onRecord = append(onRecord, recorded(a))
	}
	if err := w.box.SetActors(t.Context(), onRecord); err != nil {
		t.Fatal(err)
	}
	if err := w.box.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.rec = recovery.New(w.box, recovery.NewWorkspaces(dir), logger)
	w.wire = &wire{box: w.box}
	w.sup = supervisor.New(actors, w.box, w.rec, theHost, supervisor.Options{Data: dir, Socket: filepath.Join(dir, "worker.sock"),
		Attacher: w.wire, Environ: os.Environ(), Log: logger, Failed: st.Failed()})
	w.wire.sup = w.sup
	return w
}

// run starts a supervisor of actors on a store of its own. At the end of the test
// it is stopped, and the store is verified.
func run(t testing.TB, actors ...config.Actor) *world {
	t.Helper()
	return open(t, t.TempDir(), actors...).run()
}

func (w *world) run() *world {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	w.cancel = cancel
	running, stop := context.WithCancel(context.Background())
	w.parts.Go(func() { _ = w.box.Run(running) })
	w.parts.Go(func() { _ = w.rec.Run(running) })
	w.parts.Go(func() {
		defer stop()
		w.ended <- w.sup.Run(ctx)
	})
	w.t.Cleanup(func() {
		if err := w.stop(); err != nil {
			w.t.Errorf("the supervisor ended with %v", err)
		}
		if w.t.Failed() {
			w.t.Logf("log of the supervisor:\n%s", w.log.String())
		}
	})
	return w
}

// stop stops the supervisor, verifies the store and closes it.
func (w *world) stop() error {
	w.once.Do(func() {
		w.cancel(fmt.Errorf("the test ends"))
		select {
		case w.result = <-w.ended:
		case <-time.After(2 * patience):
			w.t.Error("the supervisor did not stop")
			return
		}
		w.parts.Wait()
		if _, err := w.box.Verify(context.Background(), func(p mailbox.Problem) { w.t.Errorf("verify: %+v", p) }); err != nil {
			w.t.Errorf("verify: %v", err)
		}
		if err := w.box.Close(); err != nil {
			w.t.Error(err)
		}
		if err := w.db.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return w.result
}

func (w *world) send(to, body string) mailbox.ID {
	w.t.Helper()
	sent, err := w.box.Send(w.t.Context(), mailbox.Outgoing{To: to, Body: []byte(body), Subject: subject(body), From: "tester"})
	if err != nil {
		w.t.Fatal(err)
	}
	return sent.ID
}

// await returns a message once it has ended.
// cancelMessage does what `inbox cancel` does.
func (w *world) cancelMessage(ctx context.Context, id mailbox.ID) (mailbox.Detail, error) {
	w.t.Helper()
	found, err := w.box.Cancel(ctx, id)
	if err == nil && found.Running {
		err = w.sup.EndCancelled(ctx, found.Holder, found.Ref)
	}
	if err != nil {
		return mailbox.Detail{}, err
	}
	return w.box.Show(ctx, id)
}

func (w *world) await(id mailbox.ID) mailbox.Detail {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	d, err := w.box.Await(ctx, id)
	if err != nil {
		w.t.Fatalf("await %s: %v (it is %s)", id, err, d.State)
	}
	return d
}

// event waits for the first event after seq that match accepts.
func (w *world) event(seq uint64, what string, match func(mailbox.Event) bool) mailbox.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		evs, more, err := w.box.Events(ctx, seq, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, ev := range evs {
			if seq = ev.Seq; match(ev) {
				return ev
			}
		}
		if len(evs) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			w.t.Fatalf("no event %q", what)
		}
	}
}

func kind(actor string, k protocol.EventKind) func(mailbox.Event) bool {
	return func(ev mailbox.Event) bool { return ev.Actor == actor && ev.Kind == k }
}

// all returns every event of a kind.
func (w *world) all(actor string, k protocol.EventKind) (out []mailbox.Event) {
	w.t.Helper()
	for seq := uint64(0); ; {
		evs, _, err := w.box.Events(context.Background(), seq, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(evs) == 0 {
			return out
		}
		for _, ev := range evs {
			if seq = ev.Seq; kind(actor, k)(ev) {
				out = append(out, ev)
			}
		}
	}
}

// slot returns the status of one slot once match accepts it.
func (w *world) slot(actor string, what string, match func(supervisor.SlotStatus) bool) supervisor.SlotStatus {
	w.t.Helper()
	return w.slotWithin(patience, actor, what, match)
}

func (w *world) slotWithin(d time.Duration, actor, what string, match func(supervisor.SlotStatus) bool) supervisor.SlotStatus {
	w.t.Helper()
	return w.anySlot(d, actor, what, func(s supervisor.SlotStatus) bool { return s.Slot == 1 && match(s) })
}

// anySlot returns the status of the first slot that match accepts, once there is one.
func (w *world) anySlot(d time.Duration, actor, what string, match func(supervisor.SlotStatus) bool) supervisor.SlotStatus {
	w.t.Helper()
	limit := time.After(d)
	for {
		changed := w.sup.Changes()
		for _, a := range w.sup.Status() {
			if i := slices.IndexFunc(a.Slots, match); a.Actor == actor && i >= 0 {
				return a.Slots[i]
			}
		}
		select {
		case <-changed:
		case <-limit:
			w.t.Fatalf("no slot of %s ever was %s: %+v", actor, what, w.sup.Status())
		}
	}
}

func (w *world) state(actor string, state protocol.SlotState) supervisor.SlotStatus {
	w.t.Helper()
	return w.slot(actor, string(state), func(s supervisor.SlotStatus) bool { return s.State == state })
}

// alive reports whether a process of that number lives and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("Z"))
}

// fifo is where children say something to the test: each line is one word.
type fifo struct {
	t    testing.TB
	path string
	said chan string
}

func newFifo(t *testing.T) *fifo {
	t.Helper()
	f := &fifo{t: t, path: filepath.Join(t.TempDir(), "fifo"), said: make(chan string, 4096)}
	mkfifo(t, f.path)
	file, err := os.OpenFile(f.path, os.O_RDWR, 0) // never at its end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	go func() { // joined by the close of file
		buf, left := make([]byte, 4096), ""
		for {
			n, err := file.Read(buf)
			if err != nil {
				return
			}
			words := strings.Split(left+string(buf[:n]), "\n")
			for _, word := range words[:len(words)-1] {
				f.said <- word
			}
			left = words[len(words)-1]
		}
	}()
	return f
}

// word is the next line.
func (f *fifo) word() string {
	f.t.Helper()
	select {
	case w := <-f.said:
		return w
	case <-time.After(patience):
		f.t.Fatal("the child said nothing")
		return ""
	}
}

func (f *fifo) pid() int {
	f.t.Helper()
	word := f.word()
	n, err := strconv.Atoi(word)
	if err != nil {
		f.t.Fatalf("%q is no pid", word)
	}
	return n
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// clear forgets what was written.
func (l *lines) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = bytes.Buffer{}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wire serves the channels of workers, as the server does: claim, complete, fail
// and ready, one request a line.
type wire struct {
	box *mailbox.Box
	sup *supervisor.Supervisor

	attaching func(fence.Holder) // called while a channel is being made; nil = nothing is
}

type wired struct {
	conn net.Conn
	done chan struct{}
	mu   sync.Mutex
}

func (*wired) Handed() (uintptr, json.RawMessage, bool) { return 0, nil, false }

func (w *wire) Adopt(uintptr, json.RawMessage, fence.Holder) (supervisor.Channel, error) {
	return nil, errors.New("these tests pass nothing on")
}

func (w *wire) Attach(conn net.Conn, h fence.Holder) supervisor.Channel {
	ch := &wired{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(ch.done)
		w.serve(ch, h)
	}()
	if w.attaching != nil {
		w.attaching(h)
	}
	return ch
}

type request struct {
	Method string
	ID     string
	Token  fence.Token
	Tell   bool // also that a claim has come to nothing
	Reason string

	Progress string
}

func (w *wire) serve(ch *wired, h fence.Holder) {
	var answers sync.WaitGroup
	defer answers.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dec := json.NewDecoder(ch.conn)
	for {
		var q request
		if err := dec.Decode(&q); err != nil {
			return
		}
		w.sup.Alive(h.Process)
		answers.Go(func() { w.answer(ctx, ch, h, q) })
	}
}

func (w *wire) answer(ctx context.Context, ch *wired, h fence.Holder, q request) {
	id, _ := mailbox.ParseID(q.ID)
	ref := mailbox.Ref{ID: id, Token: q.Token}
	switch q.Method {
	case "ready":
		w.sup.Ready(h.Process)
	case "claim":
		done := w.sup.Claiming(h.Process)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		draining := w.sup.Draining(h.Process)
		defer context.AfterFunc(draining, cancel)()
		var ds []mailbox.Delivery
		var err error
		if draining.Err() == nil {
			ds, err = w.box.Claim(ctx, h, mailbox.ClaimRequest{Wait: time.Hour})
		}
		done()
		if err != nil || len(ds) == 0 {
			if q.Tell {
				ch.write("none\n")
			}
			return
		}
		ch.write("claimed %s %s %s\n", ds[0].ID, ds[0].Token, ds[0].Body)
		return
	case "renew":
		if _, _, err := w.box.Renew(ctx, h, ref, &q.Progress); err != nil {
			ch.write("refused %v\n", err)
			return
		}
	case "complete":
		_, err := w.box.Settle(context.Background(), h, ref, mailbox.Outcome{Verdict: mailbox.Complete, Category: mailbox.CategoryCompleted,
			ExitCode: -1, ByWorker: true, Result: []byte("done")}, nil)
		if err != nil {
			ch.write("refused %v\n", err)
			return
		}
	}
	ch.write("ok\n")
}

func (c *wired) write(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.conn, format, args...)
}

func (c *wired) Notify(method string, params any) {
	text, _ := json.Marshal(params)
	c.write("%s %s\n", method, text)
}

// Close serves what was written before the end: the tree is dead, so the end of
// the file comes.
func (c *wired) Close() {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	<-c.done
	c.conn.Close()
}

var (
	_ supervisor.Attacher = (*wire)(nil)
	_ io.Writer           = (*lines)(nil)
	_                     = slices.Contains[[]int]
)

func subject(body string) string {
	return "subject of " + strings.ToValidUTF8(body[:min(len(body), 8)], "")
}
