package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/recovery"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// A liar is a store whose n-th write from now on is lost, or stored without
// saying so: the two lies a disk can tell. After the second it serves nothing
// more, as the real one does.
type liar struct {
	store.Store
	mu       sync.Mutex // guards all below
	n        int        // writes until the lie; < 0 never
	stored   bool
	poisoned bool
	told     bool
}

var errUnknown = refusal.New(refusal.OutcomeUnknown, "commit to the store", "injected", "")

// arm has the n-th write from now on be the lie. Events are written behind the back
// of an operation, and may meet it.
func (l *liar) arm(n int, stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.stored = n, stored
}

func (l *liar) hasLied() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told
}

func (l *liar) Update(ctx context.Context, fn func(store.Tx) error) error {
	l.mu.Lock()
	poisoned := l.poisoned
	l.n--
	lie := l.n == -1
	l.told = l.told || lie
	stored := l.stored
	l.mu.Unlock()
	if poisoned {
		return errUnknown
	}
	if !lie {
		return l.Store.Update(ctx, fn)
	}
	if !stored {
		// The function runs, and nothing of it is stored.
		err := l.Store.Update(ctx, func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return errors.New("not stored")
		})
		if err != nil && err.Error() != "not stored" {
			return err
		}
		return refusal.New(refusal.DiskFull, "commit to the store", "injected", "")
	}
	if err := l.Store.Update(ctx, fn); err != nil {
		return err
	}
	l.mu.Lock()
	l.poisoned = true
	l.mu.Unlock()
	return errUnknown
}

// wrap puts the liar before a store that was just opened.
func (l *liar) wrap(st store.Store) store.Store {
	l.Store, l.n, l.poisoned = st, -1, false
	return l
}

func (l *liar) View(ctx context.Context, fn func(store.Reader) error) error {
	l.mu.Lock()
	poisoned := l.poisoned
	l.mu.Unlock()
	if poisoned {
		return errUnknown
	}
	return l.Store.View(ctx, fn)
}

// Every operation, with the lie told at every one of its writes. What was not
// stored is refused and changed nothing, and the box goes on; after what was
// stored unsaid a restart and a pass of recovery leave everything consistent, no
// message lost, one receipt per start (P2.4, P4.3, P4.4, P4.10; S48, S51).
func TestLies_AtEveryWriteOfEveryOperation(t *testing.T) {
	lost := func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }
	type scene struct {
		h    *mailboxtest.House
		a    fence.Holder
		refs []mailbox.Ref // 12 claims of a; the first has 30 staged sends
		dead mailbox.ID    // with 150 receipts
		task mailbox.Ref
		th   fence.Holder
	}
	ctx := context.Background()
	operations := map[string]func(s *scene) error{
		"send": func(s *scene) error {
			_, err := s.h.Box.Send(ctx, mailbox.Outgoing{To: "work", Key: "k"})
			return err
		},
		"claim": func(s *scene) error {
			got, err := s.h.Box.Claim(ctx, s.a, mailbox.ClaimRequest{Max: 3})
			if err == nil && len(got) == 0 {
				return errors.New("nothing")
			}
			return err
		},
		"complete": func(s *scene) error { return settle(s.h, s.a, s.refs[0], mailboxtest.Completed("r")) },
		"fail":     func(s *scene) error { return settle(s.h, s.a, s.refs[0], mailboxtest.Failed("r")) },
		"complete with sends": func(s *scene) error {
			_, err := s.h.Box.Settle(ctx, s.a, s.refs[1], mailboxtest.Completed("r"), []mailbox.Outgoing{{To: "other"}, {To: "other"}})
			return err
		},
		"renew": func(s *scene) error {
			_, _, err := s.h.Box.Renew(ctx, s.a, s.refs[0], new("half"))
			return err
		},
		"leave": func(s *scene) error {
			_, err := s.h.Box.Leave(ctx, s.a, lost, mailbox.Event{Kind: "exited"})
			return err
		},
		"sweep": func(s *scene) error {
			s.h.Advance(time.Minute)
			_, err := s.h.Box.SweepExpired(ctx)
			return err
		},
		"drop":   func(s *scene) error { return s.h.Box.Drop(ctx, s.dead) },
		"cancel": func(s *scene) error { _, err := s.h.Box.Cancel(ctx, s.refs[0].ID); return err },
		"begin": func(s *scene) error {
			_, err := s.h.Box.Begin(ctx, fence.Slot{Actor: "work", Number: 5}, fence.NewProcess(), time.Minute, mailbox.Event{Kind: "started"})
			return err
		},
		"start a task": func(s *scene) error {
			_, _, err := s.h.Box.StartTask(ctx, fence.Slot{Actor: "work", Number: 6}, fence.NewProcess(), time.Minute)
			return err
		},
		"end a task": func(s *scene) error {
			_, err := s.h.Box.EndTask(ctx, s.th, s.task, mailboxtest.Completed("out"))
			return err
		},
		"unstart": func(s *scene) error { return s.h.Box.Unstart(ctx, s.th, s.task, mailbox.Event{Kind: "spawn_failed"}) },
		"set actors": func(s *scene) error {
			return s.h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work"), mailboxtest.Actor("third")})
		},
	}
	for name, operation := range operations {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stored=%v", strings.ReplaceAll(name, " ", "-"), stored), func(t *testing.T) {
				for n := 0; ; n++ {
					h := mailboxtest.New(mailboxtest.Dir(t))
					disk := &liar{n: -1}
					h.Wrap = disk.wrap
					h.MustOpen(t)
					if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work"), mailboxtest.Actor("other")}); err != nil {
						t.Fatal(err)
					}
					s := &scene{h: h, a: h.MustBegin(t, "work", 1)}
					for range 13 {
						s.refs = append(s.refs, mailboxtest.RefOf(h.MustClaim(t, s.a, h.MustSend(t, "work", ""))))
					}
					if name == "complete" || name == "fail" || name == "leave" || name == "sweep" {
						for range 30 {
							h.MustStage(t, s.a, s.refs[0], "other", "child")
						}
					}
					for range 3 {
						h.MustSend(t, "work", "")
					}
					lease, d, err := h.Box.StartTask(ctx, fence.Slot{Actor: "work", Number: 3}, fence.NewProcess(), time.Minute)
					if err != nil {
						t.Fatal(err)
					}
					s.th, s.task = lease.Holder(), mailboxtest.RefOf(d)
					s.dead = h.MustSend(t, "work", "")
					if name == "drop" {
						for range 150 {
							h.MustSettle(t, s.a, mailboxtest.RefOf(h.MustClaim(t, s.a, s.dead)), mailboxtest.Released())
						}
					}
					messages := count(t, h)

					disk.arm(n, stored)
					err = operation(s)
					finished := !disk.hasLied()
					switch {
					case finished && err != nil:
						t.Fatalf("without a lie: %v", err)
					case finished:
					case stored:
						if err != nil && !refusal.Has(err, refusal.OutcomeUnknown) {
							t.Fatalf("write %d: %v", n, err)
						}
						h.Reopen(t)
						if _, err := recovery.New(h.Box, recovery.NewWorkspaces(h.Dir), nil).Reconcile(ctx, nil); err != nil {
							t.Fatalf("write %d: reconcile: %v", n, err)
						}
					case err == nil:
						// Only what stands already may be answered: the rest is made up for.
						if name != "complete" && name != "fail" && name != "leave" && name != "sweep" && name != "claim" && name != "drop" {
							t.Fatalf("write %d was lost, and nobody was told", n)
						}
					default:
						if err := operation(s); err != nil && !refusal.Has(err, refusal.DiskFull) && !errors.As(err, new(*refusal.Error)) {
							t.Fatalf("write %d: again: %v", n, err)
						}
					}
					if !finished && name != "drop" && name != "set actors" && count(t, h) < messages {
						t.Fatalf("write %d: a message is gone", n)
					}
					h.Check(t)
					if finished {
						return
					}
				}
			})
		}
	}
}

// count is the messages that can be seen or whose place is reserved under a
// claim that goes on.
func count(t *testing.T, h *mailboxtest.House) (n int64) {
	t.Helper()
	all, err := h.Box.AllCounts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		n += c.New + c.Claimed + c.Done + c.Dead + c.Parked
	}
	return n
}

// P8, P4.10: the disk fills up after a completion, before all of its sends are
// visible. The completion stands and is answered; Run finishes the rest. Remove
// rest.add from settled and this fails.
func TestComplete_DiskFullAfterwards(t *testing.T) {
	h := mailboxtest.New(mailboxtest.Dir(t))
	disk := &liar{n: -1}
	h.Wrap = disk.wrap
	h.MustOpen(t)
	defer h.Check(t)
	ctx := t.Context()
	if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work"), mailboxtest.Actor("other")}); err != nil {
		t.Fatal(err)
	}
	a := h.MustBegin(t, "work", 1)
	ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
	var ids []mailbox.ID
	for range 30 {
		ids = append(ids, h.MustStage(t, a, ref, "other", ""))
	}
	disk.arm(1, false)
	if s := h.MustSettle(t, a, ref, mailboxtest.Completed("")); s.State != mailbox.Done {
		t.Fatalf("%+v", s)
	}
	for _, id := range ids { // all of them count as visible from the completion on
		if d := h.MustShow(t, id); d.State != mailbox.New {
			t.Fatalf("%s is %s", id, d.State)
		}
	}
	if c, _ := h.Box.Counts(ctx, "other"); c.Reserved == 0 {
		t.Fatal("nothing was left to be finished")
	}
	if left, _ := h.Box.FinishRest(ctx); left {
		t.Fatal("something is left")
	}
	if c, _ := h.Box.Counts(ctx, "other"); c.New != 30 || c.Reserved != 0 {
		t.Fatalf("%+v", c)
	}
	o := h.MustBegin(t, "other", 1)
	if got, err := h.Box.Claim(ctx, o, mailbox.ClaimRequest{Max: 30}); err != nil || len(got) != 30 {
		t.Fatal(len(got), err)
	}
}

// Damage to a staged send does not hold back the end of its attempt, nor a start.
func TestReconcile_DamagedStagedSend(t *testing.T) {
	for _, space := range []byte{'o', 'b'} {
		h := mailboxtest.New(mailboxtest.Dir(t))
		h.MustOpen(t)
		ctx := t.Context()
		if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
			t.Fatal(err)
		}
		a := h.MustBegin(t, "work", 1)
		ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
		id := h.MustStage(t, a, ref, "work", "")
		key := []byte{space, 0, 0, 0, 0, 0, 0, 0, byte(id)}
		if err := h.Store.Update(ctx, func(tx store.Tx) error { tx.Put(key, []byte("damage")); return nil }); err != nil {
			t.Fatal(err)
		}
		h.Reopen(t)
		r, err := recovery.New(h.Box, recovery.NewWorkspaces(h.Dir), nil).Reconcile(ctx, nil)
		if err != nil || len(r.Recovered) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if d := h.MustShow(t, ref.ID); d.State != mailbox.New || d.Receipts[0].Category != mailbox.CategoryWorkerLost {
			t.Fatalf("%+v", d)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
