package mailbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/store"
)

// overhearing is a store that knows whether its last update was asynchronous.
type overhearing struct {
	store.Store
	asynchronous *atomic.Bool
}

func (o overhearing) Update(ctx context.Context, fn func(store.Tx) error) error {
	return o.Store.Update(ctx, func(tx store.Tx) error {
		o.asynchronous.Store(false)
		return fn(saying{tx, o.asynchronous})
	})
}

type saying struct {
	store.Tx
	asynchronous *atomic.Bool
}

func (s saying) Asynchronous() {
	s.asynchronous.Store(true)
	s.Tx.Asynchronous()
}

// P3.12: a claim is answered before it is durable only where a crash of the machine that
// takes it leaves the message as recovery would, NEW: not the last attempt (P3.9), not what
// is to be parked, and not the end of an expired claim. Nothing else is. Leave one of these
// out of mayBeAsynchronous and this fails.
func TestClaim_IsDurableFirstWhereItsLossWouldTell(t *testing.T) {
	work, careful, once, manual := mailboxtest.Actor("work"), mailboxtest.Actor("careful"), mailboxtest.Actor("once"), mailboxtest.Actor("manual")
	careful.Park = true
	once.Retry.MaxAttempts = 1
	work.Retry.MaxAttempts = 2
	work.Auto = true
	var asynchronous atomic.Bool
	h := mailboxtest.New(mailboxtest.Dir(t))
	h.Wrap = func(st store.Store) store.Store { return overhearing{st, &asynchronous} }
	h.MustOpen(t)
	defer h.Check(t)
	actors := []mailbox.Actor{work, careful, once, manual}
	if err := h.Box.SetActors(t.Context(), actors); err != nil {
		t.Fatal(err)
	}
	holders := map[string]fence.Holder{}
	for i, a := range actors {
		holders[a.Name] = h.MustBegin(t, a.Name, i+1)
	}
	want := func(what string, want bool) {
		t.Helper()
		if got := asynchronous.Load(); got != want {
			t.Errorf("%s is answered before it is durable: got %v", what, got)
		}
	}
	for name, early := range map[string]bool{"work": true, "manual": true, "careful": false, "once": false} {
		id := h.MustSend(t, name, "")
		want("a send to "+name, false)
		ref := mailboxtest.RefOf(h.MustClaim(t, holders[name], id))
		want("a claim of "+name, early)
		h.MustSettle(t, holders[name], ref, mailboxtest.Failed("no"))
		want("a settle of "+name, false)
		if name == "work" {
			h.Advance(time.Hour)
			h.MustClaim(t, holders[name], id)
			want("the last attempt", false)
		}
	}
	// A takeover ends the expired claim.
	id := h.MustSend(t, "manual", "")
	h.MustClaim(t, holders["manual"], id)
	h.Advance(time.Hour)
	other := h.MustBegin(t, "manual", 9)
	h.MustClaim(t, other, id)
	want("a takeover", false)
}
