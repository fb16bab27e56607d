package mailbox_test

import (
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// P3, P3.6: the claim token is judged before what a completion sends. The recipient of
// its sends is gone by the time at which a completion is repeated, or takes smaller
// bodies: the repeat succeeds all the same, and a stale token is called stale. Only the
// form of a send comes first. Have fenceFirst return why and this fails.
func TestSettle_IsJudgedBeforeItsSends(t *testing.T) {
	for name, later := range map[string][]mailbox.Actor{
		"removed": nil,
		"smaller": {{Name: "next", Mailbox: true, MaxBody: 1, Limit: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			h := mailboxtest.Open(t, mailboxtest.Actor("work"), mailboxtest.Actor("next"))
			a := h.MustBegin(t, "work", 1)
			ref := mailboxtest.RefOf(h.MustClaim(t, a, h.MustSend(t, "work", "")))
			sends := []mailbox.Outgoing{{To: "next", Body: []byte("the follow-up")}}
			if _, err := h.Box.Settle(t.Context(), a, ref, mailboxtest.Completed(""), sends); err != nil {
				t.Fatal(err)
			}
			if err := h.Box.SetActors(t.Context(), append(later, mailboxtest.Actor("work"))); err != nil {
				t.Fatal(err)
			}
			got, err := h.Box.Settle(t.Context(), a, ref, mailboxtest.Completed(""), sends)
			if err != nil || !got.Repeated || got.State != mailbox.Done {
				t.Errorf("the repeat: %+v, %v", got, err)
			}
			stale := mailbox.Ref{ID: ref.ID, Token: ref.Token + 1}
			_, err = h.Box.Settle(t.Context(), a, stale, mailboxtest.Completed(""), sends)
			refused(t, "a completion with a stale token", err, refusal.FencingTokenStale)
			_, err = h.Box.Stage(t.Context(), a, stale, sends[0])
			refused(t, "a send with a stale token", err, refusal.FencingTokenStale)
			_, err = h.Box.Stage(t.Context(), a, stale, mailbox.Outgoing{To: "work", Priority: 1000})
			refused(t, "a send whose form is wrong", err, refusal.BadRequest)
		})
	}
}
