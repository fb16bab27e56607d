package mailbox_test

import (
	"context"
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
