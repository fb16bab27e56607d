package mailbox_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// weighed is a store that looks, before each View, how much memory is in use and not
// garbage.
type weighed struct {
	store.Store
	views int
	most  uint64
}

func (w *weighed) View(ctx context.Context, fn func(store.Reader) error) error {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.views, w.most = w.views+1, max(w.most, m.HeapAlloc)
	return w.Store.View(ctx, fn)
}

// Verify streams: what it keeps between its steps does not grow with the number of
// messages. Keep a few bytes for each, say the ids that it has seen, and this fails.
func TestVerify_KeepsNothingOfEachMessage(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	h := mailboxtest.Open(t, actor)
	n := 16_000
	if testing.Short() {
		n = 8_000
	}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range n / 64 {
				h.MustSend(t, "work", "a body")
			}
		})
	}
	all.Wait()
	w := &weighed{}
	h.Wrap = func(st store.Store) store.Store { w.Store = st; return w }
	h.Reopen(t)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.views, w.most = 0, 0
	got, err := h.Box.Verify(t.Context(), func(p mailbox.Problem) { t.Errorf("%+v", p) })
	if err != nil || got != int64(n) {
		t.Fatalf("%d messages, %v", got, err)
	}
	// Two kinds of records for each message, in steps of 2048.
	if w.views < 2*n/2048 {
		t.Errorf("%d messages were read in %d steps", n, w.views)
	}
	if grown := int64(w.most) - int64(m.HeapAlloc); grown > int64(4*n) {
		t.Errorf("%d bytes are kept for %d messages", grown, n)
	}
	t.Logf("%d steps, %d bytes more than before", w.views, int64(w.most)-int64(m.HeapAlloc))
}

// A store in use does not contradict itself: what verify compares is of one moment,
// while messages are sent, claimed, staged and settled beside it. Read the counters in
// another View than the records that they count and this fails.
func TestVerify_OfAStoreInUseFindsNothing(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Limit = 0
	h := mailboxtest.Open(t, actor)
	for range 300 { // so that a look takes longer than a commit
		h.MustSend(t, "work", "a body")
	}
	const rounds = 100 // of each worker: the store stays small, so that a look stays short
	var all sync.WaitGroup
	for slot := range 3 {
		holder := h.MustBegin(t, "work", slot+1)
		all.Go(func() {
			for i := range rounds {
				h.MustSend(t, "work", "more")
				d := h.MustClaim(t, holder, 0)
				if i%3 == 0 {
					h.MustStage(t, holder, mailboxtest.RefOf(d), "work", "staged")
				}
				o := mailboxtest.Completed("done")
				if i%4 == 1 {
					o = mailboxtest.Released()
				}
				h.MustSettle(t, holder, mailboxtest.RefOf(d), o)
			}
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	looks := 0
	for ended := false; !ended; looks++ {
		select {
		case <-over:
			ended = true // and once more, of the store at rest
		default:
		}
		if _, err := h.Box.Verify(t.Context(), func(p mailbox.Problem) { t.Errorf("%s: %s", p.Where, p.What) }); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d looks", looks)
}

// Who no longer waits is not kept waiting by the last step, which reads all records
// of one state: it looks at its context as the others do.
func TestVerify_EndsWithItsContextWhileItCounts(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	h.MustSend(t, "work", "a body")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client is gone")
	looks := 0
	h.Wrap = func(st store.Store) store.Store {
		return &ended{Store: st, looked: func() {
			if looks++; looks == 2 { // the first look checks the records themselves
				cancel(gone)
			}
		}}
	}
	h.Reopen(t)
	_, err := h.Box.Verify(ctx, func(p mailbox.Problem) { t.Errorf("%s: %s", p.Where, p.What) })
	if !errors.Is(err, gone) {
		t.Errorf("verify: %v", err)
	}
}

// ended is a store that tells when somebody begins to read the ended messages.
type ended struct {
	store.Store
	looked func()
}

func (e *ended) View(ctx context.Context, fn func(store.Reader) error) error {
	return e.Store.View(ctx, func(r store.Reader) error { return fn(endedReader{r, e.looked}) })
}

type endedReader struct {
	store.Reader
	looked func()
}

func (r endedReader) Scan(from, to []byte, fn func(key, value []byte) bool) {
	if len(from) == 1 && from[0] == 'z' {
		r.looked()
	}
	r.Reader.Scan(from, to, fn)
}
