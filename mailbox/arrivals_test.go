package mailbox_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// Whatever makes a message visible tells those who follow, once it is on record: a send,
// a batch in one transaction and in many, a completion with few and with many staged
// sends, an import. A duplicate and what was discarded is told to nobody. Leave out any
// call of tell and this fails.
func TestArrivals_TellsEveryMessageThatBecomesVisible(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	list, from, missed, _ := h.Box.Arrivals(0, 1000)
	if len(list) > 0 || missed || from == 0 {
		t.Fatal(list, from, missed)
	}
	told := func(what string, want []mailbox.ID) {
		t.Helper()
		got, next, missed, more := h.Box.Arrivals(from, 1000)
		var ids []mailbox.ID
		for _, a := range got {
			if a.To != "work" {
				t.Errorf("%s: %+v", what, a)
			}
			ids = append(ids, a.ID)
			h.MustShow(t, a.ID)
		}
		slices.Sort(want)
		slices.Sort(ids)
		if missed || !slices.Equal(ids, want) {
			t.Errorf("%s: told %v, want %v, missed %v", what, ids, want, missed)
		}
		select {
		case <-more:
			t.Errorf("%s: more without more", what)
		default:
		}
		from = next
	}
	_, _, _, more := h.Box.Arrivals(from, 1)
	one := h.MustSend(t, "work", "a")
	<-more
	told("a send", []mailbox.ID{one})

	for _, n := range []int{3, 40} {
		if _, err := h.Box.SendBatch(t.Context(), batch(n, func(i int, m *mailbox.Outgoing) { m.Key = "k" }), nil); err == nil {
			t.Fatal("other content under one key was sent")
		}
		told("a refused batch", nil)
		sent, err := h.Box.SendBatch(t.Context(), batch(n, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		told("a batch", idsOf(sent))
	}
	holder := h.MustBegin(t, "work", 1)
	for _, n := range []int{0, 3, 60} {
		for _, end := range []mailbox.Outcome{mailboxtest.Released(), mailboxtest.Completed("")} {
			d := h.MustClaim(t, holder, 0)
			var staged []mailbox.ID
			for range n {
				staged = append(staged, h.MustStage(t, holder, mailboxtest.RefOf(d), "work", "staged"))
			}
			told("what is staged", nil)
			h.MustSettle(t, holder, mailboxtest.RefOf(d), end)
			if end.Verdict != mailbox.Complete {
				staged = nil
			}
			told("the end of an attempt", staged)
		}
	}
	keyed := mailbox.Import{Outgoing: mailbox.Outgoing{To: "work", Key: "same"}, State: mailbox.New}
	ended := mailbox.Import{Outgoing: mailbox.Outgoing{To: "work"}, State: mailbox.Dead}
	sent, err := h.Box.Import(t.Context(), []mailbox.Import{keyed, ended, keyed})
	if err != nil {
		t.Fatal(err)
	}
	told("an import", idsOf(sent[:2]))
}

func idsOf(sent []mailbox.Sent) (ids []mailbox.ID) {
	for _, s := range sent {
		ids = append(ids, s.ID)
	}
	return ids
}

// Who falls behind is told so, and goes on from now; so is who comes from another box,
// of before a restart. What is remembered is bounded.
func TestArrivals_WhoFallsBehindIsTold(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	h := mailboxtest.Open(t, actor)
	_, from, _, _ := h.Box.Arrivals(0, 1)
	for range 11 {
		if _, err := h.Box.SendBatch(t.Context(), batch(400, nil), nil); err != nil {
			t.Fatal(err)
		}
	}
	list, next, missed, _ := h.Box.Arrivals(from, 10_000)
	if len(list) > 0 || !missed || next != from+4400 {
		t.Errorf("%d, from %d to %d, missed %v", len(list), from, next, missed)
	}
	list, _, missed, _ = h.Box.Arrivals(next-4096, 10_000)
	if len(list) != 4096 || missed {
		t.Errorf("%d of those that are remembered, missed %v", len(list), missed)
	}
	h.Advance(1)
	h.Reopen(t)
	if _, again, missed, _ := h.Box.Arrivals(next+1_000_000_000, 1); !missed || again == 0 {
		t.Error("the number of a later box is taken for one of this")
	}
}

// A box that takes the place of another one goes on with its numbers: who followed that
// one misses nothing and is told nothing twice. Where nobody followed nothing is handed
// on.
func TestArrivals_AreHandedOver(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	for _, sent := range []int{0, 1, 400, 4400} { // the last are more than are remembered
		h := mailboxtest.Open(t, actor)
		if h.Box.HandArrivals() != nil {
			t.Error("arrivals that nobody follows are handed over")
		}
		_, from, _, _ := h.Box.Arrivals(0, 1)
		for left := sent; left > 0; left -= 400 {
			if _, err := h.Box.SendBatch(t.Context(), batch(min(left, 400), nil), nil); err != nil {
				t.Fatal(err)
			}
		}
		text, err := json.Marshal(h.Box.HandArrivals())
		if err != nil {
			t.Fatal(err)
		}
		var handed mailbox.HandedArrivals
		if err := json.Unmarshal(text, &handed); err != nil {
			t.Fatal(err)
		}
		next, err := mailbox.Open(t.Context(), h.Store, h.Box.Leases(), mailbox.Options{Arrivals: &handed})
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if next.ArrivalsOf() != h.Box.ArrivalsOf() {
			t.Error("it is another box to who follows")
		}
		if sent > 4096 {
			if _, _, missed, _ := next.Arrivals(from, 1); !missed {
				t.Error("what was forgotten is not said to be missed")
			}
			from += uint64(sent) - 4096
		}
		before, at, _, _ := h.Box.Arrivals(from, 10_000)
		after, went, missed, more := next.Arrivals(from, 10_000)
		if missed || went != at || !slices.Equal(before, after) || len(after) != min(sent, 4096) {
			t.Errorf("%d arrivals up to %d, missed %v; it were %d up to %d", len(after), went, missed, len(before), at)
		}
		one, err := next.Send(t.Context(), mailbox.Outgoing{To: "work"})
		if err != nil {
			t.Fatal(err)
		}
		<-more
		if list, _, _, _ := next.Arrivals(went, 10); len(list) != 1 || list[0].ID != one.ID {
			t.Errorf("then came %v, and it is %s", list, one.ID)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
