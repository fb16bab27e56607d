package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

func batch(n int, each func(i int, m *mailbox.Outgoing)) []mailbox.Outgoing {
	list := make([]mailbox.Outgoing, n)
	for i := range list {
		list[i] = mailbox.Outgoing{To: "work", Body: fmt.Append(nil, i)}
		if each != nil {
			each(i, &list[i])
		}
	}
	return list
}

// A batch is sent whole, in its order, or not at all: one message that is refused,
// for its content, its key or a full inbox, refuses all, says which it was, and leaves
// no place reserved and no key held. Remove the removal from sendStaged and this fails.
func TestSendBatch_AllOrNothing(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{5, 100} {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		for name, c := range map[string]struct {
			at    int
			each  func(i int, m *mailbox.Outgoing)
			wants refusal.Category
		}{
			"unknown actor": {n - 1, func(i int, m *mailbox.Outgoing) {
				m.Key = fmt.Sprint(i)
				if i == n-1 {
					m.To = "nobody"
				}
			}, refusal.UnknownActor},
			"other content under a key of the batch": {n - 2, func(i int, m *mailbox.Outgoing) {
				m.Key = fmt.Sprint(i % (n - 2))
			}, refusal.DuplicateKey},
		} {
			_, err := h.Box.SendBatch(ctx, batch(n, c.each), nil)
			refused(t, name, err, c.wants)
			var which *mailbox.BatchError
			if !errors.As(err, &which) || which.Index != c.at {
				t.Fatalf("%s: %v, want message %d", name, err, c.at)
			}
			if got, _ := h.Box.Counts(ctx, "work"); got != (mailbox.Counts{}) {
				t.Fatalf("%s: %+v is left", name, got)
			}
		}
		same := batch(n, func(i int, m *mailbox.Outgoing) { m.Key, m.Body, m.Group = fmt.Sprint(i%2), nil, fmt.Sprint(i%2) })
		sent, err := h.Box.SendBatch(ctx, same, nil)
		if err != nil || sent[0].Duplicate || !sent[n-1].Duplicate || sent[n-1].ID != sent[(n-1)%2].ID {
			t.Fatal(sent, err)
		}
		sent, err = h.Box.SendBatch(ctx, batch(n, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := h.MustBegin(t, "work", 1)
		for range 2 {
			h.MustClaim(t, a, 0)
		}
		for i := range n {
			if d := h.MustClaim(t, a, 0); d.ID != sent[i].ID || string(d.Body) != fmt.Sprint(i) {
				t.Fatalf("message %d is %s %q", i, d.ID, d.Body)
			}
		}
	}
	actor := mailboxtest.Actor("work")
	actor.Limit = 50
	h := mailboxtest.Open(t, actor)
	_, err := h.Box.SendBatch(ctx, batch(51, nil), nil)
	refused(t, "a batch that does not fit", err, refusal.InboxFull)
	// Remove beyondRoom and whoever sent it is told to wait, for ever.
	if e := refusal.Of(err); e == nil || e.Retryable || e.Why != "51 messages of the batch are to it, and its limit is 50" {
		t.Errorf("what no inbox has room for: %+v", e)
	}
	if _, err := h.Box.SendBatch(ctx, batch(50, nil), nil); err != nil {
		t.Fatal(err)
	}
	_, err = h.Box.SendBatch(ctx, make([]mailbox.Outgoing, mailbox.MaxBatch+1), nil)
	refused(t, "a batch beyond the bound", err, refusal.BadRequest)
}

// A crash at any write of a batch leaves all of it or nothing, once its answer was
// given all; and nothing reserved.
func TestSendBatch_CrashAtEveryWrite(t *testing.T) {
	const n = 40
	for at := 1; ; at++ {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		stops := errors.New("crash")
		left := at
		h.Wrap = func(s store.Store) store.Store { return &dying{Store: s, left: &left, err: stops} }
		h.Reopen(t)
		_, err := h.Box.SendBatch(context.Background(), batch(n, nil), nil)
		answered := err == nil
		h.Wrap = nil
		h.Reopen(t)
		c, _ := h.Box.Counts(context.Background(), "work")
		if c.Reserved != 0 || c.New != 0 && c.New != n || answered && c.New != n {
			t.Fatalf("crash at write %d: answered %v, %+v", at, answered, c)
		}
		if left > 0 {
			return
		}
	}
}

// dying is a store that does no write after so many.
type dying struct {
	store.Store
	left *int
	err  error
}

func (d *dying) Update(ctx context.Context, fn func(store.Tx) error) error {
	if *d.left == 0 {
		return refusal.New(refusal.OutcomeUnknown, "crash", "", "").Because(d.err)
	}
	*d.left--
	return d.Store.Update(ctx, fn)
}

// What was exported comes in again in its state, CLAIMED as PARKED; and an import stops
// at the first that is refused, with those before it durable.
func TestImport_KeepsStates(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	ctx := context.Background()
	list := make([]mailbox.Import, 0, 25)
	for i := range 25 {
		list = append(list, mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Group: "g", TTL: 1e12, Key: fmt.Sprint(i)}, State: mailbox.State(i%5 + 1), Result: []byte("r"),
			Failure: mailbox.LastFailure{Category: mailbox.CategoryTimeout, Reason: "x\x00"}})
	}
	sent, err := h.Box.Import(ctx, list)
	if err != nil || len(sent) != 25 {
		t.Fatal(len(sent), err)
	}
	if c, _ := h.Box.Counts(ctx, "work"); c != (mailbox.Counts{New: 5, Done: 5, Dead: 5, Parked: 10}) {
		t.Fatalf("%+v", c)
	}
	if d := h.MustShow(t, sent[2].ID); d.State != mailbox.Done || string(d.Result) != "r" {
		t.Fatalf("%+v", d)
	}
	if d := h.MustClaim(t, h.MustBegin(t, "work", 1), 0); d.ID != sent[0].ID {
		t.Fatal(d.ID)
	}
	list[13].Subject = "other content"
	for i := range list {
		list[i].Key += "'"
	}
	list[13].Key = "13"
	sent, err = h.Box.Import(ctx, list)
	var which *mailbox.BatchError
	if !errors.As(err, &which) || which.Index != 13 || len(sent) != 13 {
		t.Fatal(len(sent), err)
	}
}

// A message that comes in under a key which it holds no more is no duplicate of another,
// and no other one of it, though both came in at one moment; one that holds its key for
// a time of its own holds it that long. Have the first hold its key and this fails.
func TestImport_KeepsKeysAsTheyWereHeld(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	one := func(body string, ttl time.Duration, free bool) mailbox.Import {
		return mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Key: "k", KeyTTL: ttl, Body: []byte(body)}, State: mailbox.Dead, KeyFree: free}
	}
	sent, err := h.Box.Import(t.Context(), []mailbox.Import{one("new", time.Hour, false), one("old", 0, true), one("older", 0, true)})
	if err != nil || len(sent) != 3 {
		t.Fatal(sent, err)
	}
	for i, s := range sent {
		d := h.MustShow(t, s.ID)
		if want := h.Now().Add(time.Hour); s.Duplicate || d.Key != "k" || d.KeyFree != (i > 0) || i == 0 && !d.KeyUntil.Equal(want) || i > 0 && !d.KeyUntil.IsZero() {
			t.Errorf("%d: %+v, %+v", i, s, d)
		}
	}
	if _, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: "k", Body: []byte("another")}); !refusal.Has(err, refusal.DuplicateKey) {
		t.Error(err)
	}
	h.Advance(time.Hour)
	if d := h.MustShow(t, sent[0].ID); !d.KeyFree || !d.KeyUntil.IsZero() {
		t.Errorf("%+v", d)
	}
	if _, err := h.Box.Send(t.Context(), mailbox.Outgoing{To: "work", Key: "k", Body: []byte("another")}); err != nil {
		t.Error(err)
	}
}

// Two messages of one batch, or two sends of one attempt, with one key and other content are
// refused, and that names no message: none was sent that anybody could look at. A key that a
// message holds names it. Remove ownKey, or the case of staged sends in duplicateTx, and this
// fails.
func TestSendBatch_OneKeyForTwo(t *testing.T) {
	for _, n := range []int{2, 30} {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		ctx := t.Context()
		list := batch(n, nil)
		list[0].Key, list[n-1].Key = "k", "k"
		_, err := h.Box.SendBatch(ctx, list, nil)
		refused(t, "a batch with one key for two", err, refusal.DuplicateKey)
		if e := refusal.Of(err); e == nil || e.Message != `the key "k" is held by message 1 of the batch` || strings.Contains(e.Next, "inbox show") {
			t.Errorf("%d messages: %+v", n, e)
		}
		first, err := h.Box.Send(ctx, list[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Box.SendBatch(ctx, list, nil)
		refused(t, "a batch with the key of a message", err, refusal.DuplicateKey)
		if e := refusal.Of(err); e == nil || !strings.Contains(e.Next, "inbox show "+first.ID.String()) {
			t.Errorf("%d messages, a message has the key: %+v", n, e)
		}
		a := h.MustBegin(t, "work", 1)
		ref := mailboxtest.RefOf(h.MustClaim(t, a, first.ID))
		_, err = h.Box.Settle(ctx, a, ref, mailboxtest.Completed(""), []mailbox.Outgoing{{To: "work", Key: "l", Body: []byte("1")}, {To: "work", Key: "l", Body: []byte("2")}})
		refused(t, "a completion with one key for two", err, refusal.DuplicateKey)
		if e := refusal.Of(err); e == nil || !strings.Contains(e.Message, "staged with it") || strings.Contains(e.Next, "inbox show") {
			t.Errorf("two sends of an attempt: %+v", e)
		}
	}
}
