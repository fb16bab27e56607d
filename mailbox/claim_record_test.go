package mailbox_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/store"
)

// P2.2: what an attempt is bound to (process, lease token, claim token) is on disk:
// it is read back after the store was closed and opened. Leave one out of
// record.encode and this fails.
func TestClaim_IsOnRecord(t *testing.T) {
	h, a, _ := house(t)
	id := h.MustSend(t, "work", "body")
	d := h.MustClaim(t, a, id)
	h.Reopen(t)
	c := h.MustShow(t, id).Claim
	if c == nil || c.Holder != a || c.Token != d.Token || c.Attempt != 1 {
		t.Fatalf("on record is %+v, granted was %+v to %+v", c, d, a)
	}
}

// P3.5, mistake 22: a settle without a token settles nothing, whoever asks and
// whatever the verb. P3.8: a message that was never claimed has no token that
// could fit, not even 0.
func TestSettle_NeedsTheToken(t *testing.T) {
	h, a, _ := house(t)
	never := h.MustSend(t, "work", "never claimed")
	held := h.MustSend(t, "work", "held")
	d := h.MustClaim(t, a, held)
	for _, o := range []mailbox.Outcome{mailboxtest.Completed(""), mailboxtest.Failed(""), mailboxtest.Released()} {
		refused(t, "no token", settle(h, a, mailbox.Ref{ID: held}, o), refusal.FencingTokenStale)
		refused(t, "never claimed, no token", settle(h, a, mailbox.Ref{ID: never}, o), refusal.FencingTokenStale)
		refused(t, "never claimed, another's token", settle(h, a, mailbox.Ref{ID: never, Token: d.Token}, o), refusal.FencingTokenStale)
	}
	if m := h.MustShow(t, never); m.State != mailbox.New || m.Claim != nil || len(m.Receipts) != 0 {
		t.Errorf("the message that was never claimed is %+v", m)
	}
}

// slow lets a test hold back commits.
type slow struct {
	store.Store
	hold atomic.Pointer[chan struct{}]
}

func (s *slow) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	if hold := s.hold.Load(); hold != nil {
		<-*hold
	}
	return err
}

// P3.12: no answer comes before its own commit is durable: sends, claims and
// settles alike.
func TestAnswers_WaitForTheirCommit(t *testing.T) {
	s := &slow{}
	h := mailboxtest.New(mailboxtest.Dir(t))
	h.Wrap = func(inner store.Store) store.Store { s.Store = inner; return s }
	h.MustOpen(t)
	t.Cleanup(func() { h.Check(t) })
	ctx := context.Background()
	if err := h.Box.SetActors(ctx, []mailbox.Actor{mailboxtest.Actor("work")}); err != nil {
		t.Fatal(err)
	}
	a := h.MustBegin(t, "work", 1)
	var d mailbox.Delivery
	for _, step := range []struct {
		name string
		ask  func()
	}{
		{"send", func() { h.MustSend(t, "work", "body") }},
		{"claim", func() {
			got, err := h.Box.Claim(ctx, a, mailbox.ClaimRequest{})
			if err != nil || len(got) != 1 {
				t.Errorf("claim: %v, %v", got, err)
				return
			}
			d = got[0]
		}},
		{"complete", func() { h.MustSettle(t, a, mailboxtest.RefOf(d), mailboxtest.Completed("x")) }},
	} {
		hold := make(chan struct{})
		s.hold.Store(&hold)
		answered := make(chan struct{})
		go func() { step.ask(); close(answered) }()
		select {
		case <-answered:
			t.Fatalf("%s was answered before its commit", step.name)
		case hold <- struct{}{}: // the commit is let go only now
		}
		<-answered
		s.hold.Store(nil)
	}
}
