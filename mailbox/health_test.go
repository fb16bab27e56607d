package mailbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/protocol"
)

// events are the kinds of the journal's events about a message, 0 = about none.
func kinds(t *testing.T, h *mailboxtest.House, id mailbox.ID) (out []string) {
	t.Helper()
	if err := h.Box.Close(); err != nil { // waits for those that were only noted
		t.Fatal(err)
	}
	evs, _, err := h.Box.Events(context.Background(), 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		if ev.Message == id {
			out = append(out, string(ev.Kind))
		}
	}
	return out
}

func died(h *mailboxtest.House, a fence.Holder, died bool) error {
	o := mailboxtest.Lost("SEGV")
	o.Died = died
	_, err := h.Box.Leave(context.Background(), a, func(mailbox.Ref) mailbox.Outcome { return o }, mailbox.Event{Kind: "exited"})
	return err
}

// A message on which two processes in a row died is said to be poison, by show and by
// one event, also over a restart; a death with its supervisor, or for another message,
// says nothing of it; a failure that its worker reported, and a person's retry, begin
// the count anew. It ends by its actor's policy as ever.
func TestPoison_IsSaid(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Retry = mailbox.Retry{MaxAttempts: 4}
	h := mailboxtest.Open(t, actor)
	id := h.MustSend(t, "work", "")
	slot := 0
	claim := func() (fence.Holder, mailbox.Ref) {
		slot++
		a := h.MustBegin(t, "work", slot)
		return a, mailboxtest.RefOf(h.MustClaim(t, a, id))
	}
	check := func(poison bool) {
		t.Helper()
		d := h.MustShow(t, id)
		if (d.Poison != "") != poison || strings.Contains(d.Why, "poison") != poison {
			t.Fatalf("poison %q, why %q", d.Poison, d.Why)
		}
	}
	for i, self := range []bool{true, false, false} { // its supervisor's death is no evidence
		a, _ := claim()
		if err := died(h, a, self); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			h.Reopen(t)
		}
		check(false)
	}
	if err := h.Box.Drop(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	id = h.MustSend(t, "work", "")
	for i := range 4 {
		check(i >= 2)
		a, _ := claim()
		if err := died(h, a, true); err != nil {
			t.Fatal(err)
		}
	}
	if d := h.MustShow(t, id); d.State != mailbox.Dead || !strings.Contains(d.Poison, "4 processes") {
		t.Fatalf("%s, %q", d.State, d.Poison)
	}
	if err := h.Box.Retry(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	check(false)
	n := 0
	for _, k := range kinds(t, h, id) {
		if k == string(protocol.EventPoison) {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d events", n)
	}
}

// Many different messages that fail in a row point at the actor, one that fails again
// and again does not; a completion ends it. Each is an event.
func TestSick_PointsAtTheActor(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Retry = mailbox.Retry{MaxAttempts: 100}
	h := mailboxtest.Open(t, actor)
	a := h.MustBegin(t, "work", 1)
	var ids []mailbox.ID
	for range 10 {
		ids = append(ids, h.MustSend(t, "work", ""))
	}
	for range 30 {
		h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, ids[0])), mailboxtest.Failed("x"))
	}
	for i, id := range ids {
		if s := h.Box.Sick("work"); s != "" {
			t.Fatalf("after %d: %s", i, s)
		}
		h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, id)), mailboxtest.Failed("x"))
	}
	if s := h.Box.Sick("work"); !strings.Contains(s, "10 different messages") {
		t.Fatal(s)
	}
	h.Advance(time.Minute)
	h.MustSettle(t, a, mailboxtest.RefOf(h.MustClaim(t, a, ids[3])), mailboxtest.Completed(""))
	if s := h.Box.Sick("work"); s != "" {
		t.Fatal(s)
	}
	got := strings.Join(kinds(t, h, 0), " ")
	if strings.Count(got, string(protocol.EventActorSick)) != 1 || strings.Count(got, string(protocol.EventActorWell)) != 1 {
		t.Fatal(got)
	}
}
