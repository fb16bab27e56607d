package mailbox_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// P3.1, P3.8: after a start at any time, in the middle of anything, each claim is of
// the message that is first among all that are on record: by priority, then send
// order, the due alone, one of a group at a time. The model reads every open record
// before every claim; the box reads a block when it gets there. Leave out markOpenTx
// in sendTx or restateTx, compare ids instead of blocks in before, or have end leave out
// what came late, and this fails.
func TestLoad_ClaimsInTheOrderOfAllRecords(t *testing.T) {
	parent := mailboxtest.Dir(t)
	actors := []string{"a", "b"}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "order")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		ctx := context.Background()
		h := mailboxtest.New(dir)
		h.Mailbox.BlockBits = rapid.Uint8Range(1, 4).Draw(t, "block bits")
		h.MustOpen(t)
		defer h.Check(t)
		var list []mailbox.Actor
		for _, name := range actors {
			a := mailboxtest.Actor(name)
			a.Limit, a.Retry.MaxAttempts, a.Retry.Initial, a.Retry.Max, a.Retry.Factor = 0, 3, 3*time.Second, 5*time.Second, 1
			list = append(list, a)
		}
		if err := h.Box.SetActors(ctx, list); err != nil {
			t.Fatal(err)
		}
		holders := map[string]fence.Holder{}
		slot := 0
		begin := func() {
			for _, name := range actors {
				slot++
				holders[name] = h.MustBegin(t, name, slot)
			}
		}
		begin()
		type running struct {
			by  fence.Holder
			ref mailbox.Ref
		}
		var claims []running
		var ids []mailbox.ID
		actor := func(t *rapid.T) string { return rapid.SampledFrom(actors).Draw(t, "actor") }
		any := func(t *rapid.T) mailbox.ID {
			if len(ids) == 0 {
				t.Skip("nothing was sent")
			}
			return rapid.SampledFrom(ids).Draw(t, "message")
		}
		outgoing := func(t *rapid.T) mailbox.Outgoing {
			m := mailbox.Outgoing{To: actor(t), Priority: rapid.SampledFrom([]int{0, 0, 0, 7, -100, 100}).Draw(t, "priority"),
				Group: rapid.SampledFrom([]string{"", "", "", "g", "h"}).Draw(t, "group")}
			m.Delay = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 4 * time.Second}).Draw(t, "delay")
			m.TTL = rapid.SampledFrom([]time.Duration{0, 0, 0, 6 * time.Second}).Draw(t, "ttl")
			return m
		}
		send := func(t *rapid.T) {
			for range rapid.IntRange(1, 9).Draw(t, "n") {
				sent, err := h.Box.Send(ctx, outgoing(t))
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, sent.ID)
			}
		}
		claim := func(t *rapid.T) {
			to := actor(t)
			want, err := h.Box.InOrder(ctx, to)
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.Box.Claim(ctx, holders[to], mailbox.ClaimRequest{})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case len(want) == 0 && len(got) > 0:
				t.Fatalf("%s was claimed, and none is ready", got[0].ID)
			case len(want) > 0 && len(got) == 0:
				t.Fatalf("none was claimed, and %v are ready", want)
			case len(got) > 0 && got[0].ID != want[0]:
				t.Fatalf("%s was claimed, and %v are ready", got[0].ID, want)
			case len(got) > 0:
				claims = append(claims, running{holders[to], mailboxtest.RefOf(got[0])})
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": send, "send again": send,
			"claim": claim, "claim again": claim, "and again": claim,
			"claim that one": func(t *rapid.T) {
				id, to := any(t), actor(t)
				if got, err := h.Box.Claim(ctx, holders[to], mailbox.ClaimRequest{ID: id}); err == nil && !got[0].Again {
					claims = append(claims, running{holders[to], mailboxtest.RefOf(got[0])})
				}
			},
			"settle": func(t *rapid.T) {
				if len(claims) == 0 {
					t.Skip("nothing runs")
				}
				i := rapid.IntRange(0, len(claims)-1).Draw(t, "claim")
				c := claims[i]
				claims = slices.Delete(claims, i, i+1)
				o := rapid.SampledFrom([]mailbox.Outcome{mailboxtest.Completed(""), mailboxtest.Failed("no"), mailboxtest.Released()}).Draw(t, "outcome")
				if rapid.Bool().Draw(t, "with a send") {
					if staged, err := h.Box.Stage(ctx, c.by, c.ref, outgoing(t)); err == nil {
						ids = append(ids, staged.ID)
					}
				}
				_, _ = h.Box.Settle(ctx, c.by, c.ref, o, nil) // one that was cancelled says so
			},
			"cancel": func(t *rapid.T) { _, _ = h.Box.Cancel(ctx, any(t)) },
			"retry":  func(t *rapid.T) { _ = h.Box.Retry(ctx, any(t)) },
			"drop":   func(t *rapid.T) { _ = h.Box.Drop(ctx, any(t)) },
			"pause": func(t *rapid.T) {
				_ = h.Box.SetPaused(ctx, actor(t), rapid.Bool().Draw(t, "paused"))
			},
			"advance": func(t *rapid.T) {
				h.Advance(time.Duration(rapid.IntRange(1, 4).Draw(t, "seconds")) * time.Second)
				h.Box.PopDue()
			},
			"unmark": func(t *rapid.T) {
				if err := h.Box.Unmark(ctx, rapid.IntRange(1, 50).Draw(t, "marks")); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func(t *rapid.T) {
				h.Reopen(t)
				if rapid.Bool().Draw(t, "with a recovery") {
					for _, c := range claims {
						_, _ = h.Box.Leave(ctx, c.by, func(mailbox.Ref) mailbox.Outcome { return mailboxtest.Lost("KILL") }, mailbox.Event{})
					}
					claims = nil
				}
				begin()
			},
		})
		// And all that is left, in order.
		for _, to := range actors {
			want, err := h.Box.InOrder(ctx, to)
			for err == nil && len(want) > 0 {
				var got []mailbox.Delivery
				if got, err = h.Box.Claim(ctx, holders[to], mailbox.ClaimRequest{}); err == nil && (len(got) == 0 || got[0].ID != want[0]) {
					t.Fatalf("%v was claimed, and %v are ready", got, want)
				}
				if err == nil {
					want, err = h.Box.InOrder(ctx, to)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// reads counts the open records that are read of a store.
type reads struct {
	store.Store
	open int
}

func (s *reads) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(&readsReader{r, s}) })
}

type readsReader struct {
	store.Reader
	s *reads
}

func (r *readsReader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	r.Reader.Scan(from, to, func(key, value []byte) bool {
		if key[0] == mailbox.SpaceOpen {
			r.s.open++
		}
		return fn(key, value)
	})
}

// P5: a start reads what was in flight, and a claim what it needs, however many
// messages wait. Have Load read all blocks and this fails.
func TestLoad_ReadsWhatWasInFlight(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
	s := &reads{}
	h.Wrap = func(st store.Store) store.Store { s.Store = st; return s }
	const n = 400
	a := h.MustBegin(t, "work", 1)
	var first mailbox.ID
	for i := range n {
		id := h.MustSend(t, []string{"work", "other"}[i%2], "")
		if i == 0 || i == n-2 {
			h.MustClaim(t, a, id) // two in flight, far apart
		}
		if i == 2 {
			first = id
		}
	}
	s.open = 0
	h.Reopen(t)
	claims, err := h.Box.Claims(t.Context())
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	// Two blocks of four, for Load and for Claims.
	if s.open > 2*2*4 {
		t.Errorf("%d records were read for 2 claims", s.open)
	}
	if held := h.Box.Held(a.Process); len(held) != 2 {
		t.Errorf("the index holds %v", held)
	}
	s.open = 0
	h.MustClaim(t, h.MustBegin(t, "work", 2), first)
	if got, err := h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{}); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if s.open > 4*4 {
		t.Errorf("%d records were read for a claim", s.open)
	}
	if all := h.Box.Unread(); all < n/4-6 {
		t.Errorf("%d blocks are unread", all)
	}
}

// between is a store that does something when a block has been looked at, before the
// box has heard of it.
type between struct {
	store.Store
	do func()
}

func (s *between) View(ctx context.Context, fn func(store.Reader) error) error {
	read := false
	err := s.Store.View(ctx, func(r store.Reader) error { return fn(&betweenReader{r, &read}) })
	if do := s.do; read && do != nil {
		s.do = nil
		do()
	}
	return err
}

type betweenReader struct {
	store.Reader
	read *bool
}

func (r *betweenReader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	if from[0] == mailbox.SpaceOpen {
		*r.read = true
	}
	r.Reader.Scan(from, to, fn)
}

// A message that becomes NEW in a block while that is read is not lost, and none is
// there twice. Leave out late, or push what is late and was found twice, and this fails.
func TestRead_BesideWhatBecomesNew(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	s := &between{}
	h.Wrap = func(st store.Store) store.Store { s.Store = st; return s }
	h.Mailbox.BlockBits = 4
	h.Reopen(t)
	a := h.MustBegin(t, "work", 1)
	var ids []mailbox.ID
	for range 8 {
		ids = append(ids, h.MustSend(t, "work", ""))
	}
	held := h.MustClaim(t, a, ids[0])
	h.MustClaim(t, a, ids[1])
	h.Reopen(t)
	b := h.MustBegin(t, "work", 2)
	s.do = func() {
		h.MustSettle(t, a, mailboxtest.RefOf(held), mailboxtest.Released())
		if _, err := h.Box.Cancel(t.Context(), ids[5]); err != nil {
			t.Error(err)
		}
		if err := h.Box.Retry(t.Context(), ids[5]); err != nil {
			t.Error(err)
		}
	}
	for i, want := range slices.Concat(ids[:1], ids[2:]) {
		got, err := h.Box.Claim(t.Context(), b, mailbox.ClaimRequest{})
		if err != nil || len(got) != 1 || got[0].ID != want {
			t.Fatalf("%v, %v, want %s", got, err, want)
		}
		if n := h.Box.ReadyEntries(); n != 6-i {
			t.Errorf("%d entries for %d messages", n, 6-i)
		}
	}
}

// Who waits is woken by what becomes due, or is made NEW by hand, in a block that
// nobody had read: nobody waits while there is one. Have take wait before it has read,
// and this fails.
func TestClaim_WaitsForWhatLiesInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("other"))
		delayed, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Delay: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		dead := h.MustSend(t, "work", "")
		for range 20 {
			h.MustSend(t, "other", "")
		}
		if _, err := h.Box.Cancel(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		h.Reopen(t)
		a := h.MustBegin(t, "work", 1)
		for _, step := range []struct {
			want mailbox.ID
			do   func() error
		}{
			{delayed.ID, func() error { h.Advance(time.Second); h.Box.PopDue(); return nil }},
			{dead, func() error { return h.Box.Retry(t.Context(), dead) }},
		} {
			got := make(chan mailbox.ID, 1)
			go func() {
				d, err := h.Box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: -1})
				if err != nil || len(d) != 1 {
					t.Error(d, err)
					got <- 0
					return
				}
				got <- d[0].ID
			}()
			synctest.Wait()
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if id := <-got; id != step.want {
				t.Fatalf("%s, want %s", id, step.want)
			}
		}
	})
}

// marks returns the keys of the marks of a store, and with drop removes them, as if
// an older version had written it.
func marks(t *testing.T, h *mailboxtest.House, drop bool) (all [][]byte) {
	t.Helper()
	if err := h.DB.View(t.Context(), func(r store.Reader) error {
		r.Scan([]byte{mailbox.SpaceBlock}, nil, func(k, _ []byte) bool {
			all = append(all, slices.Clone(k))
			return true
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for step := range slices.Chunk(all, 50) {
		if !drop {
			break
		}
		if err := h.DB.Update(t.Context(), func(tx store.Tx) error {
			for _, k := range step {
				tx.Delete(k)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A store that was written before there were blocks is marked when it is opened, also
// if that is cut off at any of its writes; one whose blocks were of another size too.
// Write blocksKey first and this fails.
func TestLoad_MarksAnOlderStore(t *testing.T) {
	for cut := range 8 {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("cut at write %d, stored %v", cut, stored), func(t *testing.T) {
				h := mailboxtest.Open(t, mailboxtest.Actor("work"))
				a := h.MustBegin(t, "work", 1)
				h.Mailbox.BlockBits = 1
				var want []mailbox.ID
				for i := range 300 {
					id := h.MustSend(t, "work", "")
					if i%100 == 50 {
						h.MustClaim(t, a, id)
					} else {
						want = append(want, id)
					}
				}
				if cut < 7 {
					marks(t, h, true)
				}
				l := &liar{}
				h.Wrap = func(st store.Store) store.Store { l.wrap(st).(*liar).arm(cut, stored); return l }
				_ = h.Close()
				err := h.Open()
				if err == nil && l.hasLied() {
					t.Error("it opened beside a lie")
				}
				h.Wrap = nil
				h.Reopen(t)
				if _, err := h.Box.Verify(t.Context(), func(p mailbox.Problem) { t.Errorf("%+v", p) }); err != nil {
					t.Fatal(err)
				}
				if held := h.Box.Held(a.Process); len(held) != 3 {
					t.Errorf("%d claims", len(held))
				}
				b := h.MustBegin(t, "work", 2)
				for _, id := range want[:20] {
					if got, err := h.Box.Claim(t.Context(), b, mailbox.ClaimRequest{}); err != nil || len(got) != 1 || got[0].ID != id {
						t.Fatalf("%v, %v, want %s", got, err, id)
					}
				}
			})
		}
	}
}

// Marks go some time after what they stood for, in turn, whatever the oldest message
// is; those that stand for something stay, also for what comes at that moment. Have
// unmark not look again in its transaction and this fails.
func TestUnmark(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	a := h.MustBegin(t, "work", 1)
	h.MustSend(t, "work", "the oldest")
	const n = 200
	var back mailbox.ID
	for i := range n {
		id := h.MustSend(t, "work", "")
		if i == n/2 {
			back = id
			if _, err := h.Box.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			continue
		}
		h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Completed(""))
	}
	before := len(marks(t, h, false))
	if before < 2*n/4 || before > 250 {
		t.Fatalf("%d marks", before)
	}
	s := &between{Store: h.DB}
	h.Wrap = func(st store.Store) store.Store { s.Store = st; return s }
	h.Reopen(t)
	b := h.MustBegin(t, "work", 2)
	// It has been looked at, with all others, when it comes back.
	s.do = func() {
		if err := h.Box.Retry(t.Context(), back); err != nil {
			t.Error(err)
		}
	}
	if err := h.Box.Unmark(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	// The size of blocks, the oldest, and the one that came back.
	if left := len(marks(t, h, false)); left != 3 {
		t.Errorf("%d marks of %d are left", left, before)
	}
	h.Reopen(t)
	for range 2 {
		if got, err := h.Box.Claim(t.Context(), b, mailbox.ClaimRequest{}); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	}
}

// Marks are looked at in turn, some at a time: none is left out because others before
// it stay. Have unmark begin at the first one each time and this fails.
func TestUnmark_InTurn(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	const n = 200
	for i := range n {
		id := h.MustSend(t, "work", "")
		if i > n/2 {
			if _, err := h.Box.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := len(marks(t, h, false))
	for range before/3 + 1 {
		if err := h.Box.Unmark(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
	}
	if left := len(marks(t, h, false)); left > before/2+2 {
		t.Errorf("%d marks of %d are left", left, before)
	}
}

// Marks are right beside everything that writes them at once, and no message is claimed
// twice or never.
func TestUnmark_BesideTraffic(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	h := mailboxtest.Open(t, actor)
	ctx, stop := context.WithCancel(t.Context())
	var tidy, all sync.WaitGroup
	tidy.Go(func() {
		for ctx.Err() == nil {
			if err := h.Box.Unmark(context.WithoutCancel(ctx), 64); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 8 {
		holder := h.MustBegin(t, "work", i+1)
		all.Go(func() {
			for k := range 60 {
				h.MustSend(t, "work", "")
				got, err := h.Box.Claim(t.Context(), holder, mailbox.ClaimRequest{})
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range got {
					if k%3 > 0 {
						h.MustSettle(t, holder, mailboxtest.RefOf(d), mailboxtest.Completed(""))
					}
				}
			}
		})
	}
	all.Wait()
	stop()
	tidy.Wait()
	want, err := h.Box.InOrder(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	h.Reopen(t)
	holder := h.MustBegin(t, "work", 20)
	for _, id := range want {
		if got, err := h.Box.Claim(t.Context(), holder, mailbox.ClaimRequest{}); err != nil || len(got) != 1 || got[0].ID != id {
			t.Fatalf("%v, %v, want %s", got, err, id)
		}
	}
}

// A mark that is missing would hide messages, and verify says so, of each kind.
// Leave out blocks in indexed and this fails.
func TestVerify_FindsMissingMarks(t *testing.T) {
	dir := mailboxtest.Dir(t)
	h := mailboxtest.New(dir)
	h.MustOpen(t)
	defer h.Close()
	if err := h.Box.SetActors(t.Context(), []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
		t.Fatal(err)
	}
	id := h.MustSend(t, "work", "")
	h.MustClaim(t, h.MustBegin(t, "work", 1), id)
	for _, key := range marks(t, h, false)[1:] {
		for _, gone := range []bool{true, false} {
			if err := h.DB.Update(t.Context(), func(tx store.Tx) error {
				if gone {
					tx.Delete(key)
				} else {
					tx.Put(key, []byte{0})
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			found := 0
			if _, err := h.Box.Verify(t.Context(), func(mailbox.Problem) { found++ }); err != nil || (found == 1) != gone {
				t.Errorf("mark %q gone %v: %d problems, %v", key, gone, found, err)
			}
		}
	}
}
