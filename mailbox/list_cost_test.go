package mailbox_test

import (
	"context"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// A counted store counts what its readers look at.
type counted struct {
	store.Store
	looked int
}

func (s *counted) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(countedReader{r, s}) })
}

type countedReader struct {
	store.Reader
	of *counted
}

func (r countedReader) Get(key []byte) []byte {
	r.of.looked++
	return r.Reader.Get(key)
}

func (r countedReader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	r.Reader.Scan(from, to, func(k, v []byte) bool { r.of.looked++; return fn(k, v) })
}

func (r countedReader) ScanBack(from, to []byte, fn func(key, value []byte) bool) {
	r.Reader.ScanBack(from, to, func(k, v []byte) bool { r.of.looked++; return fn(k, v) })
}

func (r countedReader) Sums(prefix []byte, fn func(counter []byte, value int64) bool) {
	r.Reader.Sums(prefix, func(c []byte, n int64) bool { r.of.looked++; return fn(c, n) })
}

// People who look at a mailbox wait no longer where much waits in it: a first page, from
// either end, of those in a state, a page behind a cursor, one message, and all counts take as many looks at the store
// with ten times as many messages. Read the counts from the records, sort a page, or look
// for the CLAIMED among all that wait, and this fails.
func TestList_CostsNoMoreWhereMoreWaits(t *testing.T) {
	of := &counted{}
	h := mailboxtest.New(mailboxtest.Dir(t))
	h.Wrap = func(s store.Store) store.Store { of.Store = s; return of }
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	ctx := t.Context()
	work := mailboxtest.Actor("work")
	work.Limit = 5000
	if err := h.Box.SetActors(ctx, []mailbox.Actor{work}); err != nil {
		t.Fatal(err)
	}
	a := h.MustBegin(t, "work", 1)
	fill := func(n int) (middle mailbox.ID) {
		list := make([]mailbox.Outgoing, n)
		for i := range list {
			list[i] = mailbox.Outgoing{To: "work"}
		}
		sent, err := h.Box.SendBatch(ctx, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sent[n/2].ID
	}
	middle := fill(300)
	h.MustClaim(t, a, middle)
	page := func(f mailbox.Filter) func() error {
		f.Limit = 20
		return func() error {
			got, err := h.Box.List(ctx, f)
			if err == nil && len(got.Messages) == 0 && f.State != mailbox.Dead {
				t.Errorf("%+v found nothing", f)
			}
			return err
		}
	}
	asked := map[string]func() error{
		"the first page":  page(mailbox.Filter{}),
		"the newest":      page(mailbox.Filter{Newest: true}),
		"those of one":    page(mailbox.Filter{Actor: "work"}),
		"the claimed":     page(mailbox.Filter{State: mailbox.Claimed}),
		"the dead":        page(mailbox.Filter{State: mailbox.Dead}),
		"behind a cursor": page(mailbox.Filter{After: middle.String()}),
		"one message":     func() error { _, err := h.Box.Show(ctx, middle); return err },
		"an actor's counts": func() error {
			c, err := h.Box.Counts(ctx, "work")
			if c.Claimed != 1 || c.New < 299 {
				t.Errorf("%+v", c)
			}
			return err
		},
		"all counts": func() error { _, err := h.Box.AllCounts(ctx); return err },
	}
	cost := func(name string, ask func() error) int {
		of.looked = 0
		if err := ask(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return of.looked
	}
	few := map[string]int{}
	for name, ask := range asked {
		few[name] = cost(name, ask)
	}
	fill(2700)
	for name, ask := range asked {
		if many := cost(name, ask); many > few[name] || many > 200 {
			t.Errorf("%s took %d looks among 300 messages, %d among 3000", name, few[name], many)
		}
	}
}
