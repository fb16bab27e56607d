package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// What has changed since it was chosen is not changed by who chose it: a message that was
// chosen as DEAD and has been retried, claimed, or has died once more, is neither dropped
// nor retried, and one that was chosen while it waited is not taken from its worker.
// Leave the check out of one of the transactions and this fails.
func TestStanding_WhatHasChangedIsLeft(t *testing.T) {
	ctx := context.Background()
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	sent, err := h.Box.Send(ctx, mailbox.Outgoing{To: "work", Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	id := sent.ID
	is := func(s mailbox.State) mailbox.Standing { return mailbox.Standing{State: s} }
	cancel := func(id mailbox.ID, as mailbox.Standing) error {
		_, err := h.Box.CancelIf(ctx, id, as)
		return err
	}
	left := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, mailbox.ErrStandsOtherwise) || !refusal.Has(err, refusal.WrongState) {
			t.Errorf("%s: %v, want that it has changed", what, err)
		}
	}
	done := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	left("drop of a NEW one as DEAD", h.Box.DropIf(ctx, id, is(mailbox.Dead)))
	a := h.MustBegin(t, "work", 1)
	d := h.MustClaim(t, a, 0)
	left("cancel of a CLAIMED one as NEW", cancel(id, is(mailbox.New)))
	left("drop of a CLAIMED one as DONE", h.Box.DropIf(ctx, id, is(mailbox.Done)))
	h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Completed("it is not cancelled"))
	left("cancel of a DONE one as CLAIMED", cancel(id, is(mailbox.Claimed)))
	left("retry of a DONE one as DEAD", h.Box.RetryIf(ctx, id, is(mailbox.Dead)))
	done("drop of a DONE one as DONE", h.Box.DropIf(ctx, id, is(mailbox.Done)))

	if sent, err = h.Box.Send(ctx, mailbox.Outgoing{To: "work", Body: []byte("y")}); err != nil {
		t.Fatal(err)
	}
	id = sent.ID
	done("cancel of a NEW one as NEW", cancel(id, is(mailbox.New)))
	h.Advance(time.Hour)
	chosen := mailbox.Standing{State: mailbox.Dead, EndedBy: h.Now().Add(-time.Minute)}
	done("retry of a DEAD one as DEAD", h.Box.RetryIf(ctx, id, is(mailbox.Dead)))
	done("cancel again", cancel(id, is(mailbox.New)))
	left("drop of one that has died once more since", h.Box.DropIf(ctx, id, chosen))
	chosen.EndedBy = h.Now()
	done("drop of one that had died by then", h.Box.DropIf(ctx, id, chosen))
}
