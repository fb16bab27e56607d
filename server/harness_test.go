package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// living is the registry of processes that a supervisor keeps.
type living struct {
	mu       sync.Mutex // guards what follows
	holders  map[fence.Process]fence.Holder
	modes    map[fence.Process]config.Mode
	alive    map[fence.Process]int
	claiming map[fence.Process]int
	ready    map[fence.Process]bool
	lost     map[fence.Process]int
	changed  chan struct{} // closed and replaced at each change
}

func (l *living) Lookup(p fence.Process) (fence.Holder, config.Mode, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.holders[p]
	return h, l.modes[p], ok
}

func (l *living) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *living) Alive(p fence.Process)                  { l.change(func() { l.alive[p]++ }) }
func (l *living) Ready(p fence.Process)                  { l.change(func() { l.ready[p] = true }) }
func (l *living) LeaseLost(p fence.Process, _ string)    { l.change(func() { l.lost[p]++ }) }
func (l *living) Draining(fence.Process) context.Context { return context.Background() }

func (l *living) Claiming(p fence.Process) func() {
	l.change(func() { l.claiming[p]++ })
	return func() { l.change(func() { l.claiming[p]-- }) }
}

// until waits for a change after which ok holds.
func (l *living) until(t testing.TB, ok func() bool) {
	t.Helper()
	for {
		l.mu.Lock()
		done, changed := ok(), l.changed
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		}
	}
}

// A house is a store with its sockets, served.
type house struct {
	t       testing.TB
	data    string
	db      *bolt.DB
	box     *mailbox.Box
	leases  *fence.Leases
	living  *living
	server  *server.Server
	control *server.Control
	worker  *server.Listener
	stop    func() // and wait
}

func newHouse(t testing.TB) *house {
	t.Helper()
	return newHouseIn(t, filepath.Join(t.TempDir(), "data"))
}

func houseActors() []mailbox.Actor {
	actor := func(name string, ttl time.Duration) mailbox.Actor {
		return mailbox.Actor{Name: name, Mailbox: true, ClaimTTL: ttl, Limit: 100_000,
			Retry: mailbox.Retry{MaxAttempts: 5, Initial: time.Millisecond, Max: time.Millisecond, Factor: 1}}
	}
	return []mailbox.Actor{actor("resize", time.Minute), actor("other", time.Minute), actor("brief", 300*time.Millisecond), {Name: "db"}}
}

func newLiving() *living {
	return &living{holders: map[fence.Process]fence.Holder{}, modes: map[fence.Process]config.Mode{}, alive: map[fence.Process]int{},
		claiming: map[fence.Process]int{}, ready: map[fence.Process]bool{}, lost: map[fence.Process]int{}, changed: make(chan struct{})}
}

func newHouseIn(t testing.TB, data string) *house {
	t.Helper()
	db, err := bolt.Open(data, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	leases := fence.New(db, func() fence.Instant { return fence.Instant(db.Now()) })
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
	l := newLiving()
	h := &house{t: t, data: data, db: db, box: box, leases: leases, living: l}
	h.control = server.NewControl(box, nil, "test", data)
	h.server = server.New(box, h.control, l, nil)
	people, err := server.ListenControl(data)
	if err != nil {
		t.Fatal(err)
	}
	if h.worker, err = server.ListenWorker(data); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	running, stopRunning := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := h.server.Serve(ctx, people, h.worker); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	all.Go(func() { _ = box.Run(running) })
	h.stop = sync.OnceFunc(func() { cancel(); stopRunning(); all.Wait() })
	t.Cleanup(func() {
		h.stop()
		n, err := box.Verify(context.Background(), func(p mailbox.Problem) { t.Errorf("verify: %s at %s", p.What, p.Where) })
		if err != nil {
			t.Errorf("verify %d messages: %v", n, err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// birth makes a living process in a slot of actor.
func (h *house) birth(actor string, slot int, mode config.Mode) fence.Holder {
	h.t.Helper()
	s, p := fence.Slot{Actor: actor, Number: slot}, fence.NewProcess()
	lease, err := h.box.Begin(h.t.Context(), s, p, time.Hour, mailbox.Event{Kind: "started", Actor: actor, Slot: slot})
	if err != nil {
		h.t.Fatal(err)
	}
	h.living.change(func() { h.living.holders[p], h.living.modes[p] = lease.Holder(), mode })
	return lease.Holder()
}

func (h *house) send(to, body string) string {
	h.t.Helper()
	sent, err := h.box.Send(h.t.Context(), mailbox.Outgoing{To: to, Body: []byte(body)})
	if err != nil {
		h.t.Fatal(err)
	}
	return sent.ID.String()
}

func (h *house) detail(id string) mailbox.Detail {
	h.t.Helper()
	parsed, err := mailbox.ParseID(id)
	if err != nil {
		h.t.Fatal(err)
	}
	d, err := h.box.Show(h.t.Context(), parsed)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

func (h *house) state(id string) string { return h.detail(id).State.String() }

// A peer is the client's end of a connection, a line at a time.
type peer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// patience is how long a peer waits for one answer: a bound for a broken server, from
// when the answer is waited for and not from the start of a test, which may have much
// to do before.
const patience = 5 * time.Minute

type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn, r: bufio.NewReader(patient{conn})}
}

func (h *house) people() *peer {
	h.t.Helper()
	conn, err := server.Dial(h.data)
	if err != nil {
		h.t.Fatal(err)
	}
	return newPeer(h.t, conn)
}

func (h *house) shell() *peer {
	h.t.Helper()
	conn, err := server.DialSocket(h.worker.Path())
	if err != nil {
		h.t.Fatal(err)
	}
	return newPeer(h.t, conn)
}

// channel is fd 3 of a process.
func (h *house) channel(of fence.Holder) (*peer, *server.Channel) {
	h.t.Helper()
	ours, theirs := socketPair(h.t)
	c := h.server.Attach(ours, of)
	h.t.Cleanup(c.Close)
	return newPeer(h.t, theirs), c
}

func (p *peer) write(line string) {
	p.t.Helper()
	if _, err := p.conn.Write([]byte(line + "\n")); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

type line struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *protocol.Error
}

func (p *peer) read() line {
	p.t.Helper()
	text, err := p.r.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		p.t.Fatalf("line %q: %v", text, err)
	}
	return l
}

// ask makes a request and returns its answer. params may be JSON text.
func (p *peer) ask(method string, params any) line {
	p.t.Helper()
	raw, ok := params.(string)
	if !ok {
		b, err := json.Marshal(params)
		if err != nil {
			p.t.Fatal(err)
		}
		raw = string(b)
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, raw))
	return p.read()
}

// want fails unless the answer is a refusal of the category; "" is success.
func want(t testing.TB, l line, category string) line {
	t.Helper()
	got := ""
	if l.Error != nil {
		got = string(l.Error.Data.Category)
	}
	if got != category {
		t.Fatalf("got category %q (%+v, result %s), want %q", got, l.Error, l.Result, category)
	}
	return l
}

func into[T any](t testing.TB, l line) T {
	t.Helper()
	want(t, l, "")
	var v T
	if err := json.Unmarshal(l.Result, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// claimOne claims one message on a channel.
func (p *peer) claimOne() protocol.Delivery {
	p.t.Helper()
	got := into[protocol.ClaimResult](p.t, p.ask("claim", `{}`))
	if len(got.Messages) != 1 {
		p.t.Fatalf("claimed %d messages, want 1", len(got.Messages))
	}
	return got.Messages[0]
}

func identity(h fence.Holder) protocol.Identity {
	return protocol.Identity{Process: string(h.Process), LeaseToken: protocol.Token(h.Token)}
}

func socketPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	a, b := rawPair(t)
	conns := [2]net.Conn{}
	for i, fd := range []int{a, b} {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	return conns[0], conns[1]
}
