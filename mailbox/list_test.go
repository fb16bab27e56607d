package mailbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// Whatever the filter, the direction, the size of a page and the place where a page
// has to end, the pages of a list together are the messages that Show would say
// match, in order, each once, with the index and without it.
func TestList_IsWhatShowSays(t *testing.T) {
	actors := []mailbox.Actor{mailboxtest.Actor("work"), mailboxtest.Actor("other")}
	h := mailboxtest.Open(t, actors...)
	ctx := context.Background()
	var ids []mailbox.ID
	for i := range 240 {
		m := mailbox.Outgoing{To: actors[i/7%2].Name, From: []string{"a", "b", ""}[i%3], Subject: []string{"red fox", "fox", "", "reddish"}[i%4], Body: []byte("x")}
		if i%50 == 0 {
			m.From = "rare"
		}
		sent, err := h.Box.Send(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sent.ID)
		h.Advance(time.Second)
	}
	a := h.MustBegin(t, "work", 1)
	for i := range 60 {
		switch d := h.MustClaim(t, a, 0); i % 5 {
		case 0: // it stays claimed
			ids = append(ids, h.MustStage(t, a, mailboxtest.RefOf(d), "other", "not to be seen"))
		case 1:
			h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Failed("no"))
		default:
			h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Completed(""))
		}
	}
	for i := 3; i < 240; i += 11 {
		_, _ = h.Box.Cancel(ctx, ids[i])
	}
	for i := 5; i < 240; i += 17 {
		_ = h.Box.Drop(ctx, ids[i])
	}
	all := map[mailbox.ID]mailbox.Message{}
	for _, id := range ids {
		if d, err := h.Box.Show(ctx, id); err == nil {
			all[id] = d.Message
		}
	}
	check := func(t *rapid.T) {
		f := mailbox.Filter{
			Actor:   rapid.SampledFrom([]string{"", "work", "other", "nobody"}).Draw(t, "actor"),
			State:   rapid.SampledFrom([]mailbox.State{0, mailbox.New, mailbox.Claimed, mailbox.Done, mailbox.Dead, mailbox.Parked}).Draw(t, "state"),
			From:    rapid.SampledFrom([]string{"", "", "a", "rare"}).Draw(t, "from"),
			Subject: rapid.SampledFrom([]string{"", "", "red", "fox"}).Draw(t, "subject"),
			Older:   time.Duration(rapid.SampledFrom([]int{0, 0, 100, 1000}).Draw(t, "older")) * time.Second,
			Limit:   rapid.IntRange(0, 100).Draw(t, "limit"),
			Newest:  rapid.Bool().Draw(t, "newest"),
		}
		start := mailbox.ID(rapid.SampledFrom([]int{0, 0, 1, 77, 200, 10_000}).Draw(t, "after"))
		if start != 0 {
			f.After = start.String()
		}
		h.Box.BoundLists(rapid.IntRange(1, 300).Draw(t, "records"), rapid.IntRange(1, 4).Draw(t, "steps"))
		var want []mailbox.ID
		for id, m := range all {
			if (f.Actor == "" || m.To == f.Actor) && (f.State == 0 || m.State == f.State) && (f.From == "" || m.From == f.From) &&
				strings.Contains(m.Subject, f.Subject) && (f.Older == 0 || !m.CreatedAt.After(h.Now().Add(-f.Older))) &&
				(start == 0 || id != start && (id < start) == f.Newest) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if f.Newest {
			slices.Reverse(want)
		}
		var got []mailbox.ID
		for {
			page, err := h.Box.List(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			if most := max(f.Limit, 50*min(1, 1-min(f.Limit, 1))); len(page.Messages) > most {
				t.Fatalf("%d messages on a page of %d", len(page.Messages), most)
			}
			for _, m := range page.Messages {
				got = append(got, m.ID)
			}
			if page.Next == "" {
				break
			}
			if page.Next == f.After {
				t.Fatalf("the list does not get on behind %s", f.After)
			}
			f.After = page.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", f, got, want)
		}
	}
	rapid.Check(t, check)
	// A store that a command opens to read has no index.
	bare, err := mailbox.Open(ctx, h.Store, h.Box.Leases(), mailbox.Options{Wall: h.Now})
	if err != nil {
		t.Fatal(err)
	}
	h.Box = bare
	rapid.Check(t, check)
}

// A page of a list that finds nothing ends all the same, and says how far it came:
// without the bound one request would look at everything.
func TestList_EndsWhereNothingMatches(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	for range 25 {
		h.MustSend(t, "work", "")
	}
	h.Box.BoundLists(5, 2)
	ctx := context.Background()
	var looked []int
	f := mailbox.Filter{Subject: "needle"}
	for {
		page, err := h.Box.List(ctx, f)
		if err != nil || len(page.Messages) > 0 {
			t.Fatalf("%v, %v", page.Messages, err)
		}
		looked = append(looked, page.Looked)
		if page.Next == "" {
			break
		}
		f.After = page.Next
	}
	if fmt.Sprint(looked) != "[10 10 5]" {
		t.Fatalf("looked at %v messages", looked)
	}
}

// Bad cursors, limits and ages are refused by name.
func TestList_RefusesWhatCannotBe(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	for _, f := range []mailbox.Filter{{After: "17"}, {After: "m"}, {After: "m0"}, {After: "m01"}, {After: "m-1"}, {After: "m99999999999999999999"}, {After: "nonsense\x00"},
		{Limit: -1}, {Limit: 1001}, {Older: -1}} {
		if _, err := h.Box.List(context.Background(), f); !refusal.Has(err, refusal.BadRequest) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
