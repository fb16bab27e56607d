package mailbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/mailbox/mailboxtest"
)

// P9: a delayed message is handed to a claim that waits at the very moment it is
// due, also when an earlier one comes up while Run waits. Remove dueWake and this
// fails.
func TestRun_WakesWhenDue(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		go func() { _ = box.Run(t.Context()) }()
		a := begin(t, box, 1)
		start := time.Now()
		sendTo(t, box, mailbox.Outgoing{Delay: time.Hour})
		synctest.Wait()
		sendTo(t, box, mailbox.Outgoing{At: start.Add(5 * time.Second)})
		for _, want := range []time.Duration{5 * time.Second, time.Hour} {
			got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: -1})
			if err != nil || len(got) != 1 || time.Since(start) != want {
				t.Fatalf("%d messages after %s, want one after %s, %v", len(got), time.Since(start), want, err)
			}
		}
		synctest.Wait()
	})
}

// P4.8: an expired claim is swept at the very moment of its expiry, also when it
// was renewed, or a later claim expires first. Remove expWake and this fails.
func TestRecoveryRun_SweepsAtTheExpiry(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		actor := mailboxtest.Actor("work")
		actor.Retry.Initial = 0
		box := bubble(t, dir, actor)
		lost := make(chan time.Duration, 9)
		start := time.Now()
		box.OnLost(func(fence.Holder, mailbox.Ref, string) { lost <- time.Since(start) })
		recoverIn(t, box, dir)
		a := begin(t, box, 1)
		sendTo(t, box, mailbox.Outgoing{})
		ref := claimNext(t, box, a)
		time.Sleep(4 * time.Second)
		if _, _, err := box.Renew(t.Context(), a, ref, nil); err != nil {
			t.Fatal(err)
		}
		if at := <-lost; at != 14*time.Second {
			t.Fatalf("swept after %s, want 14s", at)
		}
		actor.ClaimTTL = time.Second
		if err := box.SetActors(t.Context(), []mailbox.Actor{actor}); err != nil {
			t.Fatal(err)
		}
		claimNext(t, box, a)
		if at := <-lost; at != 15*time.Second {
			t.Fatalf("swept after %s, want 15s", at)
		}
		synctest.Wait()
	})
}

// P4.5: a claim that has used up its actor's timeout is not swept: its process is to be
// ended first, and whoever is to do that is told at that moment. So it is for one that
// its worker renews (report 4.4 #44); one that it forgets is swept. Leave out limitAt
// in index.expired and this fails.
func TestRecoveryRun_TellsOfOverdueClaims(t *testing.T) {
	for _, auto := range []bool{true, false} {
		dir := mailboxtest.Dir(t)
		synctest.Test(t, func(t *testing.T) {
			actor := mailboxtest.Actor("work")
			actor.Auto, actor.Timeout = auto, 42*time.Second
			box := bubble(t, dir, actor)
			start := time.Now()
			overdue := make(chan time.Duration, 1)
			box.OnOverdue(func(fence.Holder, mailbox.Ref, mailbox.Category) { overdue <- time.Since(start) })
			recoverIn(t, box, dir)
			a, b := begin(t, box, 1), begin(t, box, 2)
			id := sendTo(t, box, mailbox.Outgoing{})
			ref := claimNext(t, box, a)
			for range 8 {
				time.Sleep(5 * time.Second)
				if _, _, err := box.Renew(t.Context(), a, ref, nil); err != nil {
					t.Fatal(err)
				}
			}
			if at := <-overdue; at != 42*time.Second {
				t.Fatalf("auto %v: told after %s", auto, at)
			}
			if _, err := box.Claim(t.Context(), b, mailbox.ClaimRequest{ID: id}); err == nil {
				t.Fatal("handed out beside a living process")
			}
			if _, err := box.Leave(t.Context(), a, func(mailbox.Ref) mailbox.Outcome {
				return mailbox.Outcome{Verdict: mailbox.Unreported, Category: mailbox.CategoryTimeout, ExitCode: -1}
			}, mailbox.Event{Kind: "exited"}); err != nil {
				t.Fatal(err)
			}
			if d, err := box.Show(t.Context(), id); err != nil || len(d.Receipts) != 1 || d.Receipts[0].Category != mailbox.CategoryTimeout {
				t.Fatalf("auto %v: %+v, %v", auto, d.Receipts, err)
			}
			synctest.Wait()
		})
	}
}

// A claim that waits is woken by a send, by the end of a pause, and gives up
// when its time is over, with no error.
func TestClaim_Waits(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		a := begin(t, box, 1)
		start := time.Now()
		if got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: 7 * time.Second}); err != nil || len(got) != 0 || time.Since(start) != 7*time.Second {
			t.Fatal(got, err, time.Since(start))
		}
		claimed := make(chan int)
		wait := func() {
			got, _ := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: -1})
			claimed <- len(got)
		}
		go wait()
		synctest.Wait()
		sendTo(t, box, mailbox.Outgoing{})
		if n := <-claimed; n != 1 {
			t.Fatal(n)
		}
		if err := box.SetPaused(t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		go wait()
		synctest.Wait()
		sendTo(t, box, mailbox.Outgoing{})
		synctest.Wait()
		select {
		case <-claimed:
			t.Fatal("claimed while paused")
		default:
		}
		if err := box.SetPaused(t.Context(), "work", false); err != nil {
			t.Fatal(err)
		}
		if n := <-claimed; n != 1 {
			t.Fatal(n)
		}
		synctest.Wait()
	})
}

// A repeat of a claim that waits ends with its own time or context, and has the claim
// when that is granted. Have the turn of inFlight wait for no context and this fails.
func TestClaim_RepeatWaitsNoLongerThanItMay(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		a := begin(t, box, 1)
		claimed := make(chan mailbox.Delivery)
		claim := func() {
			got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: -1, Request: "r"})
			if err != nil || len(got) != 1 {
				t.Error(got, err)
				got = make([]mailbox.Delivery, 1)
			}
			claimed <- got[0]
		}
		go claim()
		synctest.Wait()
		start := time.Now()
		if got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: 7 * time.Second, Request: "r"}); err != nil || len(got) != 0 || time.Since(start) != 7*time.Second {
			t.Fatal(got, err, time.Since(start))
		}
		gone, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := box.Claim(gone, a, mailbox.ClaimRequest{Wait: -1, Request: "r"})
			ended <- err
		}()
		synctest.Wait()
		go claim()
		synctest.Wait()
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		sendTo(t, box, mailbox.Outgoing{})
		if one, two := <-claimed, <-claimed; one.ID == 0 || one.ID != two.ID || one.Token != two.Token {
			t.Errorf("%+v, %+v", one, two)
		}
		synctest.Wait()
	})
}

// A worker that was woken and goes away at that moment hands the message on: no
// message waits beside an idle worker (see TestIndex_LeaveHandsOn).
func TestClaim_HandsOverWhenTheWokenLeaves(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		for round := range 50 {
			a, b := begin(t, box, 2*round+1), begin(t, box, 2*round+2)
			first, cancel := context.WithCancel(t.Context())
			claimed := make(chan int, 2)
			go func() {
				got, _ := box.Claim(first, a, mailbox.ClaimRequest{Wait: -1})
				claimed <- len(got)
			}()
			synctest.Wait()
			go func() {
				got, _ := box.Claim(t.Context(), b, mailbox.ClaimRequest{Wait: time.Minute})
				claimed <- len(got)
			}()
			synctest.Wait()
			go cancel()
			sendTo(t, box, mailbox.Outgoing{})
			start := time.Now()
			if n := <-claimed + <-claimed; n != 1 {
				t.Fatalf("round %d: %d claimed the message", round, n)
			}
			cancel()
			if first.Err() != nil && time.Since(start) > time.Minute {
				t.Fatalf("round %d: it waited %s", round, time.Since(start))
			}
			if n := box.Waiting("work"); n != 0 {
				t.Fatalf("%d wait still", n)
			}
		}
		synctest.Wait()
	})
}

// Report 4.1 #7: somebody who waited was given a lock though his own lease had ended.
// A claim waits, and its process's lease ends meanwhile. It is refused, and the message
// stays ready.
func TestClaim_LeaseEndsWhileItWaits(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		a, b := begin(t, box, 1), begin(t, box, 2)
		failed := make(chan error)
		go func() {
			_, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{Wait: -1})
			failed <- err
		}()
		synctest.Wait()
		if _, err := box.Leave(t.Context(), a, nil, mailbox.Event{Kind: "exited"}); err != nil {
			t.Fatal(err)
		}
		id := sendTo(t, box, mailbox.Outgoing{})
		if err := <-failed; err == nil {
			t.Fatal("granted to a process without a lease")
		}
		if got, err := box.Claim(t.Context(), b, mailbox.ClaimRequest{Wait: time.Second}); err != nil || len(got) != 1 || got[0].ID != id {
			t.Fatal(got, err)
		}
		synctest.Wait()
	})
}

// Await returns when the message ends, when it is dropped, and when its context
// ends first.
func TestAwait(t *testing.T) {
	dir := mailboxtest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		box := bubble(t, dir, mailboxtest.Actor("work"))
		a := begin(t, box, 1)
		ended := make(chan mailbox.State)
		await := func(id mailbox.ID) {
			d, err := box.Await(t.Context(), id)
			if err != nil {
				d.State = 0
			}
			ended <- d.State
		}
		id := sendTo(t, box, mailbox.Outgoing{})
		go await(id)
		go await(id)
		synctest.Wait()
		got, err := box.Claim(t.Context(), a, mailbox.ClaimRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Settle(t.Context(), a, mailboxtest.RefOf(got[0]), mailboxtest.Completed("r"), nil); err != nil {
			t.Fatal(err)
		}
		if one, two := <-ended, <-ended; one != mailbox.Done || two != mailbox.Done {
			t.Fatal(one, two)
		}
		id = sendTo(t, box, mailbox.Outgoing{})
		go await(id)
		synctest.Wait()
		if err := box.Drop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if s := <-ended; s != 0 {
			t.Fatal(s)
		}
		id = sendTo(t, box, mailbox.Outgoing{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d, err := box.Await(ctx, id); err == nil || d.State != mailbox.New {
			t.Fatal(d.State, err)
		}
		synctest.Wait()
	})
}
