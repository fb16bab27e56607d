package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
	"github.com/sovereign-run/sovereign/worker"
)

// sdk is a worker of the Go SDK on a channel of the server.
func (h *house) sdk(holder fence.Holder) (*worker.Client, func(method string, params any)) {
	h.t.Helper()
	ours, theirs := socketPair(h.t)
	channel := h.server.Attach(ours, holder)
	c := worker.NewClient(theirs, protocol.Identity{})
	h.t.Cleanup(func() { _ = c.Close(); channel.Close() })
	return c, channel.Notify
}

// Several workers with several handlers each: every message is completed by one
// attempt, and what was sent within it is visible once.
func TestSDK_EveryMessageOnce(t *testing.T) {
	h := newHouse(t)
	const messages = 200
	for i := range messages {
		h.send("resize", strconv.Itoa(i))
	}
	var handled atomic.Int64
	allDone := make(chan struct{})
	var workers sync.WaitGroup
	for slot := range 3 {
		c, notify := h.sdk(h.birth("resize", slot+1, config.Worker))
		workers.Go(func() {
			err := c.Run(t.Context(), func(ctx context.Context, m *worker.Message) error {
				if _, err := m.Send(ctx, protocol.Outgoing{To: "other", Body: m.Body}); err != nil {
					return err
				}
				m.Result = m.Body
				if handled.Add(1) == messages {
					close(allDone)
				}
				return m.Check(ctx)
			}, worker.Concurrency(8))
			if err != nil {
				t.Errorf("run: %v", err)
			}
		})
		go func() { <-allDone; notify("drain", nil) }()
	}
	workers.Wait()
	counts, err := h.box.AllCounts(t.Context())
	if err != nil || counts["resize"].Done != messages || counts["other"].New != messages {
		t.Fatalf("counts %+v %v, want %d DONE and as many NEW for other", counts, err, messages)
	}
}

// A claim that its worker renews itself lives as long as the handler, many times
// its ttl of 300 ms. All of it runs on one clock of the test's own, so that a busy
// machine makes no renewal late.
func TestSDK_RenewsManualClaims(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := bubbleHouse(t, dir)
		id := h.send("brief", "x")
		holder := h.birth("brief", 1, config.Worker)
		ours, theirs := net.Pipe()
		channel := h.server.Attach(ours, holder)
		c := worker.NewClient(theirs, protocol.Identity{})
		defer func() { _ = c.Close(); channel.Close() }()
		err := c.Run(t.Context(), func(ctx context.Context, m *worker.Message) error {
			defer channel.Notify("drain", nil)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute): // the work
			}
			return m.Check(ctx)
		})
		if err != nil || h.state(id) != "DONE" {
			t.Fatalf("run: %v, message %+v", err, h.detail(id))
		}
	})
}

// bubbleHouse is a house in a synctest bubble: no sockets, and all clocks are the
// bubble's.
func bubbleHouse(t *testing.T, dir string) *house {
	t.Helper()
	db, err := bolt.Open(dir, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	leases := fence.New(db, func() fence.Instant { return fence.Instant(time.Hour + time.Since(start)) })
	box, err := mailbox.Open(t.Context(), db, leases, mailbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.SetActors(t.Context(), houseActors()); err != nil {
		t.Fatal(err)
	}
	if err := box.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, data: dir, box: box, leases: leases, living: newLiving()}
	h.control = server.NewControl(box, nil, "test", dir)
	h.server = server.New(box, h.control, h.living, nil)
	t.Cleanup(func() {
		if err := errors.Join(box.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A message taken from its worker: the handler's context ends, and its return is
// not a settle.
func TestSDK_FencedHandler(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	c, notify := h.sdk(holder)
	h.box.OnLost(func(_ fence.Holder, ref mailbox.Ref, reason string) {
		notify(protocol.NotifyClaimLost, protocol.ClaimLost{ID: ref.ID.String(), Token: protocol.Token(ref.Token), Reason: reason})
	})
	began := make(chan struct{})
	cause := make(chan error, 1)
	done := make(chan error, 1)
	go func() {
		done <- c.Run(t.Context(), func(ctx context.Context, m *worker.Message) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})
	}()
	<-began
	found := into[protocol.InboxChanged](t, h.people().ask("inbox.cancel", fmt.Sprintf(`{"ids":[%q]}`, id)))
	if found.Results[0].State != "DEAD" {
		t.Fatalf("cancelled %+v", found)
	}
	if err := <-cause; !refusal.Has(err, refusal.LeaseExpired) {
		t.Errorf("cause %v", err)
	}
	notify("drain", nil)
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	d := h.detail(id)
	if d.State != mailbox.Dead || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryCancelled {
		t.Errorf("message %+v", d)
	}
}

// The same over worker.sock, for a worker without a channel.
func TestSDK_OverWorkerSocket(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	conn, err := net.Dial("unix", h.worker.Path())
	if err != nil {
		t.Fatal(err)
	}
	c := worker.NewClient(conn, identity(holder))
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Run(ctx, func(ctx context.Context, m *worker.Message) error {
		defer cancel()
		if err := c.Ping(ctx); err != nil {
			return err
		}
		_, err := c.Send(ctx, protocol.SendParams{Outgoing: protocol.Outgoing{To: "other", Body: []byte("now")}})
		return err
	})
	if err != nil || h.state(id) != "DONE" {
		t.Fatalf("run: %v, message %s", err, h.state(id))
	}
	h.living.until(t, func() bool { return h.living.ready[holder.Process] })
}

// workerMain is a real worker process of this test binary: it completes one
// message with what it finds about descriptor 3, starts a child that would inherit
// the channel, and drains with its supervisor's end.
func workerMain() int {
	c, err := worker.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = c.Run(context.Background(), func(ctx context.Context, m *worker.Message) error {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", "if (true >&3) 2>/dev/null; then echo inherited; else echo closed; fi").Output()
		m.Result = out
		return err
	})
	if refusal.Has(err, refusal.Unavailable) {
		return 75 // the supervisor is gone
	}
	return 0
}

// With a real child on descriptor 3: its own children do not inherit the channel,
// and it learns of the supervisor's end.
func TestSDK_RealChildOnDescriptor3(t *testing.T) {
	h := newHouse(t)
	id := h.send("resize", "x")
	holder := h.birth("resize", 1, config.Worker)
	ours, theirs := socketPair(t)
	channel := h.server.Attach(ours, holder)
	file, err := theirs.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"SOVEREIGN_TEST_WORKER=1", "SOVEREIGN_FD=3", "GORACE=atexit_sleep_ms=0"}
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = file.Close(), theirs.Close()
	parsed, err := mailbox.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.box.Await(t.Context(), parsed)
	if err != nil || d.State != mailbox.Done || string(d.Result) != "closed\n" {
		t.Errorf("message %s, result %q, %v; want DONE, closed", d.State, d.Result, err)
	}
	channel.Close()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 75 {
		t.Errorf("the worker ended with %v, want exit status 75", err)
	}
}
