package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/worker"
)

// hands is how many messages a long-lived worker works on at one time.
const hands = 2

// A staff is a long-lived worker: it has not heard of claims that are lost, and
// settles whatever it has begun. It is the mailbox that refuses.
type staff struct {
	*Life
	client *worker.Client
	claims context.Context // ends when no more is to be claimed

	mu      sync.Mutex // guards what follows
	old     []Grant    // what it has held
	spawned bool
}

// work is a long-lived worker until its supervisor is gone or does not want it any
// more. One on an odd slot finishes what it has when it is told to end; the others
// are ended.
func (l *Life) work() error {
	if l.mode == modeSocket {
		syscall.CloseOnExec(3) // the channel stays unused
		if err := os.Unsetenv("SOVEREIGN_FD"); err != nil {
			return err
		}
	}
	client, err := worker.Open()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := context.Background()
	if l.slot%2 == 1 {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
	}
	s := &staff{Life: l, client: client, claims: ctx}
	if err := client.Ready(ctx); err != nil {
		return nil // the supervisor is gone, or the lease
	}
	var all sync.WaitGroup
	for hand := range hands {
		all.Go(func() { s.serve(hand) })
	}
	all.Wait()
	return nil
}

// serve claims and works until a claim is refused.
func (s *staff) serve(hand int) {
	var next []protocol.Delivery
	for n := 0; s.claims.Err() == nil; n++ {
		got := next
		next = nil
		if len(got) == 0 {
			p := protocol.ClaimParams{Wait: protocol.Duration(5 * time.Second), Max: 1 + n%3}
			if n%5 == 0 { // asked twice, as if the first answer had been lost
				p.Request = fmt.Sprintf("hand-%d-%d", hand, n)
			}
			var err error
			if got, err = s.claim(s.claims, p); err != nil {
				return
			}
			if p.Request != "" && len(got) > 0 {
				if _, err := s.claim(s.claims, p); err != nil {
					return
				}
			}
		}
		for _, d := range got {
			more, err := s.attempt(d)
			if err != nil {
				return
			}
			next = append(next, more...)
		}
	}
}

// claim returns an error where the process should end.
func (s *staff) claim(ctx context.Context, p protocol.ClaimParams) ([]protocol.Delivery, error) {
	call := s.rec.Call(Line{Method: protocol.MethodClaim, Message: p.ID})
	got, _, err := s.client.Claim(ctx, p)
	s.rec.Answer(call, Line{Claimed: s.grants(got)}, err)
	return got, final(err)
}

// grants notes what has been claimed.
func (s *staff) grants(got []protocol.Delivery) (out []Grant) {
	for _, d := range got {
		out = append(out, Grant{Message: d.ID, Token: d.Token, Attempt: d.Attempt, Nonce: d.Subject})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = append(s.old, out...)
	return out
}

// final is err where it means that nothing of this process counts any more, or
// that nobody answers.
func final(err error) error {
	if err == nil {
		return nil
	}
	switch category := categoryOf(err); category {
	case unknown, refusal.ActorLeaseLost, refusal.Unavailable:
		return err
	}
	return nil
}

// attempt is one message from its claim to its end, as behave decides.
func (s *staff) attempt(d protocol.Delivery) (next []protocol.Delivery, err error) {
	b := s.behave(d.Subject, d.Attempt)
	ref := protocol.ClaimRef{ID: d.ID, Token: d.Token}
	if b.Reclaim {
		if _, err := s.claim(s.claims, protocol.ClaimParams{ID: d.ID}); err != nil {
			return nil, err
		}
	}
	for _, f := range b.Staged {
		if err := s.send(f, &ref); err != nil {
			return nil, err
		}
	}
	for _, f := range b.Direct {
		if err := s.send(f, nil); err != nil {
			return nil, err
		}
	}
	if b.Spawn {
		s.spawn()
	}
	if b.Progress {
		if err := s.renew(ref, new("half of it")); err != nil {
			return nil, err
		}
	}
	for left := b.Work; left > 0; {
		step := min(left, time.Second)
		pause(step)
		if left -= step; left > 0 && b.Renew {
			if err := s.renew(ref, nil); err != nil {
				return nil, err
			}
		}
	}
	if next, err = s.end(ref, b, b.End); err != nil || b.End == endForget {
		return next, err
	}
	if b.Again {
		again := b
		again.Next = false
		if _, err = s.end(ref, again, b.End); err != nil {
			return next, err
		}
	}
	if b.Other {
		verb := endComplete
		if b.End == endComplete {
			verb = endRelease
		}
		pause(min(b.Work, 300*time.Millisecond) + 50*time.Millisecond)
		if _, err = s.end(ref, Behaviour{}, verb); err != nil {
			return next, err
		}
	}
	if b.Old {
		s.mu.Lock()
		old := s.old[int(d.Token)%len(s.old)]
		s.mu.Unlock()
		if old.Message != d.ID && s.settledLongAgo(old) {
			if _, err = s.end(protocol.ClaimRef{ID: old.Message, Token: old.Token}, Behaviour{}, endComplete); err != nil {
				return next, err
			}
		}
	}
	if b.Nothing {
		_, err = s.end(protocol.ClaimRef{ID: d.ID}, Behaviour{}, endComplete)
	}
	return next, err
}

// settledLongAgo keeps a hand from settling what the other one works on.
func (s *staff) settledLongAgo(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.old) > 16 && g.Token < s.old[len(s.old)-12].Token
}

func (s *staff) renew(ref protocol.ClaimRef, progress *string) error {
	call := s.rec.Call(Line{Method: protocol.MethodRenew, Message: ref.ID, Token: ref.Token})
	_, _, err := s.client.Renew(context.Background(), ref.ID, ref.Token, progress)
	s.rec.Answer(call, Line{}, err)
	return final(err)
}

func (s *staff) send(f Follow, claim *protocol.ClaimRef) error {
	line := Line{Method: protocol.MethodSend, To: f.To, Nonce: f.Nonce, Key: f.Key}
	if claim != nil {
		line.Message, line.Token = claim.ID, claim.Token
	}
	call := s.rec.Call(line)
	sent, err := s.client.Send(context.Background(), protocol.SendParams{Outgoing: f.outgoing(), Claim: claim})
	s.rec.Answer(call, Line{ID: sent.ID, Duplicate: sent.Duplicate}, err)
	return final(err)
}

func (f Follow) outgoing() protocol.Outgoing {
	return protocol.Outgoing{To: f.To, Subject: f.Nonce, Body: protocol.Body(f.Nonce), Key: f.Key}
}

// end settles a claim, or does not.
func (s *staff) end(ref protocol.ClaimRef, b Behaviour, verb string) (next []protocol.Delivery, err error) {
	line := Line{Method: protocol.MethodFail, Message: ref.ID, Token: ref.Token}
	fail := protocol.FailParams{ID: ref.ID, Token: ref.Token, Reason: "decided so"}
	switch verb {
	case endForget:
		return nil, nil
	case endCrash:
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		select {} // it is on its way
	case endComplete:
		line.Method = protocol.MethodComplete
		line.Result = fmt.Sprintf("%s under %d", ref.ID, ref.Token)
		p := protocol.CompleteParams{ID: ref.ID, Token: ref.Token, Result: protocol.Body(line.Result)}
		for _, f := range b.Carried {
			p.Send = append(p.Send, f.outgoing())
			line.Sends = append(line.Sends, f.Nonce)
		}
		if b.Batch {
			return nil, s.settle(line, protocol.SettleItem{Complete: &p})
		}
		if b.Next && s.claims.Err() == nil {
			p.Next = &protocol.Next{Max: 2}
		}
		call := s.rec.Call(line)
		out, _, err := s.client.Complete(context.Background(), p)
		s.rec.Answer(call, Line{State: out.State, Claimed: s.grants(out.Messages)}, err)
		return out.Messages, final(err)
	case endRelease:
		line.Method = protocol.MethodRelease
		if b.Batch {
			return nil, s.settle(line, protocol.SettleItem{Release: &ref})
		}
		call := s.rec.Call(line)
		out, err := s.client.Release(context.Background(), ref.ID, ref.Token)
		s.rec.Answer(call, Line{State: out.State}, err)
		return nil, final(err)
	case endDead:
		fail.Dead, line.Dead = true, true
	case endDelay:
		fail.Delay = new(protocol.Duration(300 * time.Millisecond))
	}
	if b.Batch {
		return nil, s.settle(line, protocol.SettleItem{Fail: &fail})
	}
	call := s.rec.Call(line)
	out, err := s.client.Fail(context.Background(), fail)
	s.rec.Answer(call, Line{State: out.State}, err)
	return nil, final(err)
}

// settle makes one end by the method for many.
func (s *staff) settle(line Line, item protocol.SettleItem) error {
	call := s.rec.Call(line)
	out, err := s.client.Settle(context.Background(), []protocol.SettleItem{item})
	var answer Line
	if err == nil && len(out) == 1 {
		answer.State = out[0].State
		if out[0].Error != nil {
			err = out[0].Error
		}
	}
	s.rec.Answer(call, answer, err)
	return final(err)
}

// spawn leaves a descendant behind, in a session of its own, that holds what this
// process holds. There is one for each process.
func (s *staff) spawn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawned {
		return
	}
	s.spawned = true
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = s.held
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		s.rec.Note(Line{Kind: "spawn", Why: errors.Join(errors.New("no descendant"), err).Error()})
	}
}

// pause is the time that work takes.
func pause(d time.Duration) { <-time.After(d) }
