// Package mailboxtest opens mailboxes for tests: a real store in a folder of the
// test's own, a wall clock and a lease clock that stand still until the test
// moves them, and a check of everything on record when the test ends.
//
// After every test the store is opened anew and verified (mailbox.Box.Verify):
// whatever a test was about, it also shows that nothing on record contradicts
// anything else.
package mailboxtest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/store"
	"github.com/sovereign-run/sovereign/store/bolt"
)

// TB is what a House needs of a test; *testing.T, *testing.B and *rapid.T have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// A House is a mailbox with its store, leases and clocks. Its clocks may be
// moved from any goroutine.
type House struct {
	Dir    string
	DB     *bolt.DB
	Store  store.Store // what the mailbox works on: DB, or what Wrap made of it
	Leases *fence.Leases
	Box    *mailbox.Box

	Wrap    func(store.Store) store.Store // given before Open; nil = the store itself
	Options bolt.Options                  // Monotonic is the House's own
	Mailbox mailbox.Options               // Wall, Random and BlockBits are the House's own unless given

	mu   sync.Mutex // guards the clocks
	wall time.Time
	mono int64
}

// Start is where the wall clock of a House begins.
var Start = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// Open returns a house with the given actors, loaded and ready. When t ends
// the house is closed, opened anew, and verified.
func Open(t testing.TB, actors ...mailbox.Actor) *House {
	t.Helper()
	h := New(Dir(t))
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	if err := h.Box.SetActors(context.Background(), actors); err != nil {
		t.Fatalf("set the actors: %v", err)
	}
	return h
}

// Dir returns an empty folder that is removed after the test: in memory where
// the machine has a place for that, since a test that does not cut the power
// learns nothing from waiting for the disk.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sovereign")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}

// New returns a house in dir that is not open.
func New(dir string) *House {
	return &House{Dir: dir, wall: Start, mono: int64(time.Hour)}
}

// MustOpen opens the house: store, mailbox, index.
func (h *House) MustOpen(t TB) {
	t.Helper()
	if err := h.Open(); err != nil {
		t.Fatalf("open: %v", err)
	}
}

// Open opens the house, as a supervisor that starts would.
func (h *House) Open() error {
	o := h.Options
	o.Monotonic = func() (int64, string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.mono, "test boot"
	}
	db, err := bolt.Open(h.Dir, o)
	if err != nil {
		return err
	}
	h.DB, h.Store = db, db
	if h.Wrap != nil {
		h.Store = h.Wrap(db)
	}
	h.Leases = fence.New(h.Store, func() fence.Instant { return fence.Instant(db.Now()) })
	options := h.Mailbox
	if options.Wall == nil {
		options.Wall = h.Now
	}
	if options.Random == nil {
		options.Random = func() float64 { return 0.5 } // no jitter
	}
	if options.BlockBits == 0 {
		options.BlockBits = 2 // few messages are many blocks, so that an index is read in many steps
	}
	h.Box, err = mailbox.Open(context.Background(), h.Store, h.Leases, options)
	if err == nil {
		err = h.Box.Load(context.Background())
	}
	if err != nil {
		_ = db.Close()
	}
	return err
}

// Close closes mailbox and store.
func (h *House) Close() error {
	_ = h.Box.Close()
	return h.DB.Close()
}

// Reopen closes the house and opens it again, as after a crash: nobody has said
// that he leaves.
func (h *House) Reopen(t TB) {
	t.Helper()
	_ = h.Close() // a store that has failed says so once more
	h.MustOpen(t)
}

// Now is the wall clock.
func (h *House) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wall
}

// Advance moves both clocks on by d.
func (h *House) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = h.wall.Add(d)
	h.mono += int64(d)
}

// Step moves the wall clock alone by d, which may be negative.
func (h *House) Step(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = h.wall.Add(d)
}

// Check closes the house, opens it anew and verifies it.
func (h *House) Check(t TB) {
	t.Helper()
	h.Wrap, h.Options.Commit = nil, nil
	_ = h.Close()
	if err := h.Open(); err != nil {
		t.Errorf("open after the test: %v", err)
		return
	}
	h.Verify(t)
	if err := h.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Verify fails the test for everything that is wrong with what is on record.
func (h *House) Verify(t TB) {
	t.Helper()
	if _, err := h.Box.Verify(context.Background(), func(p mailbox.Problem) {
		t.Errorf("verify: %s: %s", p.Where, p.What)
	}); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// Actor is an actor whose claims are renewed by hand and expire after ten
// seconds, with three attempts and one second between them.
func Actor(name string) mailbox.Actor {
	return mailbox.Actor{Name: name, Mailbox: true, ClaimTTL: 10 * time.Second, Limit: 1000, MaxBody: 1 << 20,
		Retry: mailbox.Retry{MaxAttempts: 3, Initial: time.Second, Max: time.Minute, Factor: 2}}
}

// MustBegin starts a process in a slot, with a lease that is kept.
func (h *House) MustBegin(t TB, actor string, slot int) fence.Holder {
	t.Helper()
	l, err := h.Box.Begin(context.Background(), fence.Slot{Actor: actor, Number: slot}, fence.NewProcess(), time.Minute,
		mailbox.Event{Kind: "started"})
	if err != nil {
		t.Fatalf("begin %s/%d: %v", actor, slot, err)
	}
	return l.Holder()
}

// MustSend sends a message and returns its id.
func (h *House) MustSend(t TB, to, body string) mailbox.ID {
	t.Helper()
	s, err := h.Box.Send(context.Background(), mailbox.Outgoing{To: to, Body: []byte(body)})
	if err != nil {
		t.Fatalf("send to %s: %v", to, err)
	}
	return s.ID
}

// MustClaim claims a message by its id, 0 = the next.
func (h *House) MustClaim(t TB, holder fence.Holder, id mailbox.ID) mailbox.Delivery {
	t.Helper()
	got, err := h.Box.Claim(context.Background(), holder, mailbox.ClaimRequest{ID: id})
	if err != nil || len(got) != 1 {
		t.Fatalf("claim %s: %v, %d messages", id, err, len(got))
	}
	return got[0]
}

// MustSettle settles a claim.
func (h *House) MustSettle(t TB, holder fence.Holder, ref mailbox.Ref, o mailbox.Outcome) mailbox.Settled {
	t.Helper()
	s, err := h.Box.Settle(context.Background(), holder, ref, o, nil)
	if err != nil {
		t.Fatalf("settle %s: %v", ref.ID, err)
	}
	return s
}

// MustShow returns all about a message.
func (h *House) MustShow(t TB, id mailbox.ID) mailbox.Detail {
	t.Helper()
	d, err := h.Box.Show(context.Background(), id)
	if err != nil {
		t.Fatalf("show %s: %v", id, err)
	}
	return d
}

// MustStage sends within a claim.
func (h *House) MustStage(t TB, holder fence.Holder, ref mailbox.Ref, to, body string) mailbox.ID {
	t.Helper()
	s, err := h.Box.Stage(context.Background(), holder, ref, mailbox.Outgoing{To: to, Body: []byte(body)})
	if err != nil {
		t.Fatalf("stage to %s: %v", to, err)
	}
	return s.ID
}

// RefOf names a delivery's claim.
func RefOf(d mailbox.Delivery) mailbox.Ref { return mailbox.Ref{ID: d.ID, Token: d.Token} }

// Completed is a completion with a result.
func Completed(result string) mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.Complete, Category: mailbox.CategoryCompleted, ExitCode: -1, Result: []byte(result)}
}

// Failed is a failure that the worker reports.
func Failed(reason string) mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.FailAttempt, Category: mailbox.CategoryFailedByWorker, ExitCode: -1, Reason: reason}
}

// Released is a release.
func Released() mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased, ExitCode: -1}
}

// Lost is the death of a worker.
func Lost(signal string) mailbox.Outcome {
	return mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryWorkerLost, ExitCode: -1, Signal: signal}
}
