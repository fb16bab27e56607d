package mailbox_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
	"github.com/sovereign-run/sovereign/refusal"
)

// Mistake 27, report 4.4 #46: a claim that is renewed faithfully but whose progress does not
// change is overdue at the very moment that its time is over, whether the worker
// renews or the supervisor does; from then on nothing may be done under it. Progress
// that changes moves that moment. Remove staleAt from wakeAt and this fails.
func TestRenew_ProgressMustChange(t *testing.T) {
	for _, auto := range []bool{false, true} {
		t.Run(fmt.Sprint("auto ", auto), func(t *testing.T) {
			dir := mailboxtest.Dir(t)
			synctest.Test(t, func(t *testing.T) {
				actor := mailboxtest.Actor("work")
				actor.Auto, actor.Progress = auto, 20*time.Second
				box := bubble(t, dir, actor)
				type told struct {
					at  time.Duration
					why mailbox.Category
				}
				overdue := make(chan told, 9)
				start := time.Now()
				box.OnOverdue(func(_ fence.Holder, _ mailbox.Ref, why mailbox.Category) { overdue <- told{time.Since(start), why} })
				recoverIn(t, box, dir)
				a, b := begin(t, box, 1), begin(t, box, 2)
				id := sendTo(t, box, mailbox.Outgoing{})
				ref := claimNext(t, box, a)
				for i := range 20 { // progress until 10 s, then always the same
					time.Sleep(time.Second)
					progress := fmt.Sprint(min(i, 9))
					if _, _, err := box.Renew(t.Context(), a, ref, &progress); err != nil {
						t.Fatalf("renewal %d: %v", i, err)
					}
				}
				for range 9 {
					time.Sleep(time.Second)
					if _, _, err := box.Renew(t.Context(), a, ref, nil); err != nil {
						t.Fatal(err)
					}
				}
				if got := <-overdue; got != (told{30 * time.Second, mailbox.CategoryNoProgress}) {
					t.Fatalf("told %+v", got)
				}
				same := "9"
				_, _, err := box.Renew(t.Context(), a, ref, &same)
				refused(t, "renew without progress", err, refusal.LeaseExpired)
				_, err = box.Settle(t.Context(), a, ref, mailboxtest.Completed(""), nil)
				refused(t, "complete without progress", err, refusal.LeaseExpired)
				_, err = box.Claim(t.Context(), b, mailbox.ClaimRequest{ID: id})
				refused(t, "claim beside a process that is being ended", err, refusal.MessageNotClaimable)
				if _, err := box.Leave(t.Context(), a, func(mailbox.Ref) mailbox.Outcome {
					return mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryNoProgress, ExitCode: -1}
				}, mailbox.Event{Kind: "exited"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			})
		})
	}
}

// Report 4.4 #47: nothing is ended for want of progress where the actor does not ask for it.
func TestRenew_NoProgressTimeoutUnlessAskedFor(t *testing.T) {
	h := mailboxtest.Open(t, mailboxtest.Actor("work"))
	a := h.MustBegin(t, "work", 1)
	h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, 0))
	for range 1000 {
		h.Advance(9 * time.Second)
		same := "x"
		if _, _, err := h.Box.Renew(t.Context(), a, ref, &same); err != nil {
			t.Fatal(err)
		}
	}
	h.MustSettle(t, a, ref, mailboxtest.Completed(""))
}

// A reload can shorten what progress may take: from the next change of it on that holds, and
// somebody looks at the claim by then, not when it would have been late before. Leave the
// comparison of times out of renewed and this fails.
func TestRenew_ProgressTimeoutIsShortened(t *testing.T) {
	actor := mailboxtest.Actor("work")
	actor.Auto, actor.Progress = true, time.Hour
	h := mailboxtest.Open(t, actor)
	a := h.MustBegin(t, "work", 1)
	h.MustSend(t, "work", "")
	ref := mailboxtest.RefOf(h.MustClaim(t, a, 0))
	late, _, _ := h.Box.NextExpiry()
	actor.Progress = time.Minute
	if err := h.Box.SetActors(t.Context(), []mailbox.Actor{actor}); err != nil {
		t.Fatal(err)
	}
	half := "half"
	if _, _, err := h.Box.Renew(t.Context(), a, ref, &half); err != nil {
		t.Fatal(err)
	}
	if at, ok, _ := h.Box.NextExpiry(); !ok || late-at < fence.Instant(50*time.Minute) {
		t.Errorf("it is looked at by %v, %v, and was by %v", at, ok, late)
	}
	h.MustSettle(t, a, ref, mailboxtest.Completed(""))
}
