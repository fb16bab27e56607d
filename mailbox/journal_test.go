package mailbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// hanging is a store whose Updates wait while mu is held.
type hanging struct {
	store.Store
	mu     *sync.RWMutex
	events chan struct{} // gets one, if it has none, as an Update begins
}

func (s hanging) Update(ctx context.Context, fn func(store.Tx) error) error {
	select {
	case s.events <- struct{}{}:
	default:
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Store.Update(ctx, fn)
}

// While the store hangs a bounded number of events waits in memory, which are written in
// their order once it answers. Of those beyond it is said at once that they are dropped, and
// then how many were. Keep all of evs in note, and this fails.
func TestNote_IsBoundedWhileTheStoreHangs(t *testing.T) {
	h := mailboxtest.New(mailboxtest.Dir(t))
	var said bytes.Buffer
	h.Mailbox.Log = slog.New(slog.NewTextHandler(&said, nil))
	s := hanging{mu: new(sync.RWMutex), events: make(chan struct{}, 1)}
	h.Wrap = func(inner store.Store) store.Store { s.Store = inner; return s }
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	before, err := h.Box.LastEvents(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.events:
	default:
	}
	s.mu.Lock()

	const beyond = 7
	note := func(n int) {
		h.Box.Note(mailbox.Event{Kind: "noted", Slot: n})
	}
	note(0)
	<-s.events // it is being written, and waits no more
	for n := range mailbox.MaxNoted + beyond {
		note(1 + n)
	}
	s.mu.Unlock()
	if err := h.Box.Close(); err != nil {
		t.Fatal(err)
	}
	after := uint64(0)
	if len(before) > 0 {
		after = before[0].Seq
	}
	evs, _, err := h.Box.Events(t.Context(), after, 2*mailbox.MaxNoted)
	if err != nil || len(evs) != 1+mailbox.MaxNoted {
		t.Fatalf("%d events are on record, %v; want %d", len(evs), err, 1+mailbox.MaxNoted)
	}
	for n, ev := range evs {
		if ev.Slot != n {
			t.Fatalf("event %d is in place %d", ev.Slot, n)
		}
	}
	for _, want := range []string{"until the store answers", "count=" + strconv.Itoa(beyond) + " "} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("said, and not %q once:\n%s", want, said.String())
		}
	}
}
