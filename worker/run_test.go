package worker_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker"
)

const (
	minute = int64(60_000)
	second = int64(1_000)
)

// What the handler returns is how the attempt ends; a panic fails it. The
// completion claims the next message in the same call.
func TestRun_SettlesAsTheHandlerReturns(t *testing.T) {
	for name, c := range map[string]struct {
		handler worker.Handler
		method  string
		check   func(t *testing.T, req protocol.Request)
	}{
		"nil": {func(_ context.Context, m *worker.Message) error { m.Result = []byte("out"); return nil }, "complete", func(t *testing.T, req protocol.Request) {
			p := params[protocol.CompleteParams](t, req)
			if string(p.Result) != "out" || p.Next == nil || p.Token != 1 || p.ID != "m1" {
				t.Errorf("%s", req.Params)
			}
		}},
		"error": {func(context.Context, *worker.Message) error { return errors.New("broken") }, "fail", func(t *testing.T, req protocol.Request) {
			if p := params[protocol.FailParams](t, req); p.Reason != "broken" || p.Dead || p.Delay != nil {
				t.Errorf("%s", req.Params)
			}
		}},
		"retry": {func(context.Context, *worker.Message) error { return worker.Retry(5*time.Second, errors.New("busy")) }, "fail", func(t *testing.T, req protocol.Request) {
			if p := params[protocol.FailParams](t, req); p.Reason != "busy" || p.Delay == nil || p.Delay.Std() != 5*time.Second || p.Dead {
				t.Errorf("%s", req.Params)
			}
		}},
		"dead": {func(context.Context, *worker.Message) error { return worker.Dead(nil) }, "fail", func(t *testing.T, req protocol.Request) {
			if p := params[protocol.FailParams](t, req); !p.Dead || p.Reason == "" {
				t.Errorf("%s", req.Params)
			}
		}},
		"release": {func(context.Context, *worker.Message) error { return worker.Release }, "release", func(*testing.T, protocol.Request) {}},
		"panic": {func(context.Context, *worker.Message) error { panic("oh no") }, "fail", func(t *testing.T, req protocol.Request) {
			if p := params[protocol.FailParams](t, req); !strings.Contains(p.Reason, "oh no") || !strings.Contains(p.Reason, "run_test.go") {
				t.Errorf("%s", req.Params)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := newScript(t)
				done := make(chan error, 1)
				go func() { done <- client.Run(t.Context(), c.handler) }()
				s.begin(message(1, minute))
				req := s.want(c.method)
				c.check(t, req)
				s.answer(req, map[string]any{"state": "DONE"})
				// It goes on with the next.
				next := s.want("claim")
				s.notify("drain", nil)
				s.answer(next, protocol.ClaimResult{Messages: []protocol.Delivery{message(2, minute)}})
				s.answer(s.want("release"), protocol.ReleaseResult{State: "NEW"}) // claimed while draining began
				if err := <-done; err != nil {
					t.Errorf("run: %v", err)
				}
			})
		})
	}
}

// Mistake 24: an answer that was long under way does not lengthen the claim: its
// time counts from when the request was sent.
func TestRun_CountsFromSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		start := time.Now()
		var deadline time.Time
		go func() {
			_ = client.Run(t.Context(), func(_ context.Context, m *worker.Message) error {
				deadline = m.Deadline()
				return nil
			})
		}()
		s.answer(s.want("ready"), protocol.Empty{})
		claim := s.want("claim")
		time.Sleep(2 * time.Second) // a fifth of the ttl
		s.answer(claim, protocol.ClaimResult{Messages: []protocol.Delivery{message(1, 10*second)}})
		s.answer(s.want("complete"), protocol.CompleteResult{State: "DONE"})
		if got := deadline.Sub(start); got > 10*time.Second {
			t.Errorf("the claim is believed to last %v from the request, want 10s at most", got)
		}
	})
}

// A claim that waited long for its message was granted much later than it was
// sent: the worker renews before it begins, and does not begin where that is
// refused.
func TestRun_RenewsAfterLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		handled := make(chan time.Time, 1)
		go func() {
			_ = client.Run(t.Context(), func(_ context.Context, m *worker.Message) error {
				handled <- m.Deadline()
				return nil
			})
		}()
		s.answer(s.want("ready"), protocol.Empty{})
		claim := s.want("claim")
		time.Sleep(time.Minute)
		s.answer(claim, protocol.ClaimResult{Messages: []protocol.Delivery{message(1, 10*second)}})
		renew := s.want("renew")
		sent := time.Now()
		time.Sleep(time.Second)
		s.answer(renew, protocol.RenewResult{RemainingMS: 9 * second})
		if got := (<-handled).Sub(sent); got != 9*time.Second {
			t.Errorf("deadline %v after the renewal was sent, want 9s", got)
		}
		s.answer(s.want("complete"), protocol.CompleteResult{State: "DONE"})
		claim = s.want("claim")
		time.Sleep(time.Minute)
		s.answer(claim, protocol.ClaimResult{Messages: []protocol.Delivery{message(2, 10*second)}})
		s.refuse(s.want("renew"), refusal.LeaseExpired)
		s.want("claim") // and m2 was not handled
		if len(handled) != 0 {
			t.Error("a message whose claim was refused was handled")
		}
	})
}

// Mistake 25, report 4.3 #43: renewals come at a third of the time left; one that gets no
// answer and one that is refused for another reason than the fence change nothing.
func TestRun_RenewalsMayFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		start := time.Now()
		release := make(chan struct{})
		cause := make(chan error, 1)
		go func() {
			_ = client.Run(t.Context(), func(ctx context.Context, _ *worker.Message) error {
				select {
				case <-ctx.Done():
				case <-release:
				}
				cause <- context.Cause(ctx)
				return nil
			})
		}()
		s.begin(message(1, 9*second))
		s.want("renew") // never answered
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("first renewal after %v, want 3s", got)
		}
		s.refuse(s.want("renew"), refusal.Unavailable)
		s.answer(s.want("renew"), protocol.RenewResult{RemainingMS: 9 * second})
		renewed := time.Now()
		s.want("renew")
		if got := time.Since(renewed); got != 3*time.Second {
			t.Errorf("renewal after %v, want 3s", got)
		}
		close(release)
		if err := <-cause; err != nil {
			t.Errorf("the handler's context ended: %v", err)
		}
		s.want("complete")
	})
}

// Without any renewal the claim is taken for lost at its deadline, not later; it
// is given back, not settled.
func TestRun_StopsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		start := time.Now()
		cause := make(chan error, 1)
		go func() {
			_ = client.Run(t.Context(), func(ctx context.Context, _ *worker.Message) error {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return ctx.Err()
			})
		}()
		s.begin(message(1, 9*second))
		for req := s.read(); ; req = s.read() {
			if req.Method == "release" {
				s.refuse(req, refusal.LeaseExpired)
				s.want("claim")
				break
			}
			if req.Method != "renew" {
				t.Errorf("asked %s", req.Method)
			}
		}
		if err := <-cause; !refusal.Has(err, refusal.LeaseExpired) {
			t.Errorf("cause %v, want lease_expired", err)
		}
		if got := time.Since(start); got > 9*time.Second || got < 8*time.Second {
			t.Errorf("gave up after %v, want just 9s", got)
		}
	})
}

// A definite refusal of a renewal, claim_lost and lease_lost end the handler's
// context with the reason. Nothing is settled after that; where the supervisor has
// not refused the claim itself, it is told that the work has ended.
func TestRun_LossEndsTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(s *script)
		cause refusal.Category
		then  string // what the worker asks next; "": Run ends
	}{
		"refused renewal": {func(s *script) { s.refuse(s.want("renew"), refusal.FencingTokenStale) }, refusal.FencingTokenStale, "claim"},
		"claim_lost": {func(s *script) {
			s.notify("claim_lost", protocol.ClaimLost{ID: "m9", Token: 9, Reason: "another's"})
			s.notify("claim_lost", protocol.ClaimLost{ID: "m1", Token: 7, Reason: "an older attempt's"})
			s.notify("claim_lost", protocol.ClaimLost{ID: "m1", Token: 1, Reason: "cancelled"})
		}, refusal.LeaseExpired, "release"},
		"lease_lost":      {func(s *script) { s.notify("lease_lost", nil) }, refusal.ActorLeaseLost, ""},
		"supervisor dies": {func(s *script) { _ = s.conn.Close() }, refusal.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := newScript(t)
				cause, started, done := make(chan error, 1), make(chan struct{}), make(chan error, 1)
				go func() {
					done <- client.Run(t.Context(), func(ctx context.Context, _ *worker.Message) error {
						close(started)
						<-ctx.Done()
						cause <- context.Cause(ctx)
						return nil
					})
				}()
				s.begin(message(1, minute))
				<-started
				c.lose(s)
				if err := <-cause; !refusal.Has(err, c.cause) {
					t.Errorf("cause %v, want %s", err, c.cause)
				}
				if c.then != "" {
					s.want(c.then)
					return
				}
				if err := <-done; !refusal.Has(err, c.cause) {
					t.Errorf("run: %v, want %s", err, c.cause)
				}
			})
		})
	}
}

// When the caller's context ends the worker drains: what runs is finished, with a
// context that lives.
func TestRun_DrainsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		ctx, cancel := context.WithCancel(t.Context())
		started, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- client.Run(ctx, func(ctx context.Context, _ *worker.Message) error {
				close(started)
				<-finish
				return ctx.Err()
			})
		}()
		s.begin(message(1, minute))
		<-started
		cancel()
		synctest.Wait()
		close(finish)
		req := s.want("complete")
		if p := params[protocol.CompleteParams](t, req); p.Next != nil {
			t.Error("the completion claims more while the worker drains")
		}
		s.answer(req, protocol.CompleteResult{State: "DONE"})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A SIGTERM drains the worker, as the end of the context does. Remove
// DrainOnSIGTERM and this test's process dies of it.
func TestRun_DrainsOnSIGTERM(t *testing.T) {
	client, s := newScript(t)
	done := make(chan error, 1)
	go func() {
		done <- client.Run(t.Context(), func(context.Context, *worker.Message) error { return nil }, worker.DrainOnSIGTERM(true))
	}()
	s.begin()
	s.want("claim") // it waits
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What a claim brings after its caller has gone is given back, uncharged.
func TestClient_LateClaimIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, _, err := client.Claim(ctx, protocol.ClaimParams{Wait: protocol.Duration(time.Hour)})
			done <- err
		}()
		claim := s.want("claim")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("claim: %v", err)
		}
		s.answer(claim, protocol.ClaimResult{Messages: []protocol.Delivery{message(4, minute)}})
		if p := params[protocol.ClaimRef](t, s.want("release")); p.ID != "m4" || p.Token != 4 {
			t.Errorf("released %+v", p)
		}
	})
}

// As many messages are worked on at one time as asked for, no more.
func TestRun_Concurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, s := newScript(t)
		running := make(chan struct{}, 10)
		finish := make(chan struct{})
		go func() {
			_ = client.Run(t.Context(), func(context.Context, *worker.Message) error {
				running <- struct{}{}
				<-finish
				return nil
			}, worker.Concurrency(3))
		}()
		s.answer(s.want("ready"), protocol.Empty{})
		for i := range 3 {
			s.answer(s.want("claim"), protocol.ClaimResult{Messages: []protocol.Delivery{message(i+1, minute)}})
		}
		synctest.Wait()
		if len(running) != 3 {
			t.Errorf("%d handlers run, want 3", len(running))
		}
		close(finish)
		for completed := 0; completed < 3; {
			if req := s.read(); req.Method == "complete" {
				s.answer(req, protocol.CompleteResult{State: "DONE"})
				completed++
			}
		}
	})
}
