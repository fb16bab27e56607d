package mailbox_test

import (
	"bytes"
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

// Report 4.8 #77 and its kind: a message comes in whose body and result are both as large
// as can be, which is more than one transaction holds. A crash at any write leaves it
// whole or leaves nothing of it, and nothing reserved. Have it written in one and this
// fails.
func TestImport_OfALargeBodyAndAsLargeAResult(t *testing.T) {
	body, result := bytes.Repeat([]byte("b"), mailbox.MaxBody), bytes.Repeat([]byte("r"), mailbox.MaxBody)
	large := mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Body: body, Group: "g", Key: "k"}, State: mailbox.Done, Result: result, ResultTruncated: true}
	small := mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Group: "g"}, State: mailbox.New}
	for writes := 0; ; writes++ {
		h := mailboxtest.Open(t, mailboxtest.Actor("work"))
		left := writes
		h.Wrap = func(s store.Store) store.Store { return &dying{s, &left, errors.New("crash")} }
		h.Reopen(t)
		left = writes
		sent, err := h.Box.Import(t.Context(), []mailbox.Import{small, large, small})
		h.Wrap = nil
		h.Reopen(t)
		h.Verify(t)
		c, _ := h.Box.Counts(t.Context(), "work")
		if c.Reserved != 0 || c.Dead+c.Parked != 0 || int64(len(sent)) > c.New+c.Done {
			t.Fatalf("crash at write %d: %d answered, %+v", writes, len(sent), c)
		}
		if err != nil {
			continue
		}
		d := h.MustShow(t, sent[1].ID)
		if d.State != mailbox.Done || !bytes.Equal(d.Body, body) || !bytes.Equal(d.Result, result) || !d.ResultTruncated || c.New != 2 {
			t.Errorf("%s, %d bytes of body, %d of result, cut: %v; %+v", d.State, len(d.Body), len(d.Result), d.ResultTruncated, c)
		}
		again, err := h.Box.Import(t.Context(), []mailbox.Import{large})
		if err != nil || !again[0].Duplicate || again[0].ID != sent[1].ID {
			t.Errorf("again: %+v, %v", again, err)
		}
		return
	}
}

// What a hostile file holds is refused with its place, and those before it are durable: a
// failure whose category is none would else lie in the record that each claim rewrites. It
// made a transaction too large, of which the next read found nothing, and the process
// ended there. Remove possible and this fails.
func TestImport_RefusesWhatNoMessageHas(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	good := mailbox.Import{Outgoing: mailbox.Outgoing{To: "work"}, State: mailbox.Dead, Failure: mailbox.LastFailure{Category: mailbox.CategoryTimeout}}
	for what, change := range map[string]func(*mailbox.Import){
		"a huge category":     func(m *mailbox.Import) { m.Failure.Category = mailbox.Category(strings.Repeat("c", 4<<20)) },
		"control characters":  func(m *mailbox.Import) { m.Failure.Category = "\x1b[31m" },
		"a time too far away": func(m *mailbox.Import) { m.TTL, m.LapsesAt = time.Hour, h.Now().Add(1<<63-1) },
	} {
		bad := good
		change(&bad)
		sent, err := h.Box.Import(t.Context(), []mailbox.Import{good, bad, good})
		which, ok := errors.AsType[*mailbox.BatchError](err)
		if !ok || which.Index != 1 || len(sent) != 1 || !refusal.Has(err, refusal.BadRequest) {
			t.Errorf("%s: %d came in, %v", what, len(sent), err)
		}
	}
}

// A message that was worked on when its time to live was over comes in as PARKED, and a
// person can retry it: its time then runs anew, and is that with which it was sent. Take
// the time that was left for it and it is DEAD the moment it is retried.
func TestImport_KeepsTheTimeToLive(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	sent, err := h.Box.Import(t.Context(), []mailbox.Import{
		{Outgoing: mailbox.Outgoing{To: "work", TTL: time.Hour}, LapsesAt: h.Now(), State: mailbox.Claimed},
		{Outgoing: mailbox.Outgoing{To: "work", TTL: time.Hour}, LapsesAt: h.Now().Add(time.Minute), State: mailbox.New},
	})
	if err != nil || len(sent) != 2 {
		t.Fatal(sent, err)
	}
	h.Advance(time.Minute)
	if err := h.Box.LapseDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := h.MustShow(t, sent[1].ID); d.State != mailbox.Dead || d.TTL != time.Hour {
		t.Errorf("%s, ttl %s", d.State, d.TTL)
	}
	if err := h.Box.Retry(t.Context(), sent[0].ID); err != nil {
		t.Fatal(err)
	}
	if d := h.MustShow(t, sent[0].ID); d.State != mailbox.New || !d.LapsesAt.Equal(h.Now().Add(time.Hour)) {
		t.Errorf("%s until %s", d.State, d.LapsesAt)
	}
}

// The limit of an inbox is of what waits: what has ended comes in beside a full one, what
// is NEW does not (P3, inbox.limit). Remove the exception and this fails.
func TestImport_OfEndedOnesTakesNoPlace(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 2
	h := mailboxtest.Open(t, actor)
	list := []mailbox.Import{}
	for i := range 4 {
		list = append(list, mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Subject: fmt.Sprint(i)}, State: mailbox.State(i%2*2 + 1)})
	}
	list = append(list, list[1], list[0])
	sent, err := h.Box.Import(t.Context(), list)
	which, ok := errors.AsType[*mailbox.BatchError](err)
	if !ok || which.Index != 5 || len(sent) != 5 || !refusal.Has(err, refusal.InboxFull) {
		t.Errorf("%d came in, %v", len(sent), err)
	}
}

// A message that was moved to another store holds its key there for the producer, who sends
// it again as he sent it first, and in a store that has it still it is not taken in beside
// itself. Let the header imported-id be part of what a key compares and both are refused,
// duplicate_key, as if they said something else.
func TestImport_SameMessageUnderItsKey(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	out := mailbox.Outgoing{To: "work", Body: []byte("order"), Key: "order-17", Headers: map[string]string{"kind": "book"}}
	moved, err := h.Box.Import(t.Context(), []mailbox.Import{{Outgoing: out, ID: "m7", State: mailbox.New}})
	if err != nil || len(moved) != 1 || moved[0].Duplicate {
		t.Fatal(moved, err)
	}
	again, err := h.Box.Send(t.Context(), out)
	if err != nil || !again.Duplicate || again.ID != moved[0].ID {
		t.Errorf("sent again: %+v, %v", again, err)
	}
	back, err := h.Box.Import(t.Context(), []mailbox.Import{{Outgoing: out, ID: moved[0].ID.String(), State: mailbox.New}})
	if err != nil || len(back) != 1 || !back[0].Duplicate || back[0].ID != moved[0].ID {
		t.Errorf("taken in beside itself: %+v, %v", back, err)
	}
	out.Headers = map[string]string{"kind": "film"}
	if _, err := h.Box.Send(t.Context(), out); !refusal.Has(err, refusal.DuplicateKey) {
		t.Errorf("another header: %v", err)
	}
}
