package main

import (
	"context"
	"fmt"
	"syscall"
)

// play is the whole demonstration, in the order in which it happens. Each step
// waits for what it is about, never for a time.
func (s *demoStage) play(ctx context.Context) error {
	s.story.title()
	if err := s.raise(ctx); err != nil {
		return err
	}
	for _, scene := range []func(context.Context) error{s.killWorker, s.freezeWorker, s.killSupervisor} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return s.until(ctx, "all orders are in the mail", func() bool { return s.completed[demoMail] == 6 })
}

// killWorker: a worker dies in the middle of order 2, its follow-up staged.
func (s *demoStage) killWorker(ctx context.Context) error {
	packing, labelling := "pack order 2", "label order 3"
	s.wanted[packing], s.wanted[labelling] = true, true // label's is for the next scene
	s.story.act("four orders are sent")
	if err := s.send(ctx, 1, 2, 3, 4); err != nil {
		return err
	}
	if err := s.until(ctx, "order 2 is being packed", func() bool { return s.held[packing].PID != 0 }); err != nil {
		return err
	}
	r := s.held[packing]
	s.story.act(fmt.Sprintf("SIGKILL to %s/%s, pid %d, in the middle of %s", r.Actor, r.Slot, r.PID, r.Order))
	s.cutOff(r, demoKilled)
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill a worker: %w", err)
	}
	return s.until(ctx, "order 2 is packed by another attempt", func() bool { return s.done[r.Message] > r.Attempt })
}

// freezeWorker: a worker stands still until its claim on order 3 has expired and
// another one has done the work; then it goes on as if nothing had happened.
func (s *demoStage) freezeWorker(ctx context.Context) error {
	labelling := "label order 3"
	if err := s.until(ctx, "order 3 is being labelled", func() bool { return s.held[labelling].PID != 0 }); err != nil {
		return err
	}
	r := s.held[labelling]
	s.story.act(fmt.Sprintf("SIGSTOP to %s/%s, pid %d, which holds %s", r.Actor, r.Slot, r.PID, r.Order))
	s.cutOff(r, demoFrozen)
	if err := syscall.Kill(r.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze a worker: %w", err)
	}
	s.frozen = r.PID
	if err := s.until(ctx, "order 3 is labelled by another worker", func() bool { return s.done[r.Message] > r.Attempt }); err != nil {
		return err
	}
	s.story.act(fmt.Sprintf("SIGCONT to %s/%s: it goes on, and completes %s too late", r.Actor, r.Slot, r.Order))
	if err := syscall.Kill(r.PID, syscall.SIGCONT); err != nil {
		return fmt.Errorf("wake a worker: %w", err)
	}
	s.frozen = 0
	r.goOn()
	wasRefused := func() bool {
		for _, seen := range s.refused {
			if seen.Message == r.Message && seen.Attempt == r.Attempt {
				return true
			}
		}
		return s.done[r.Message] == r.Attempt // which would be a fault: the verdict says so
	}
	if err := s.until(ctx, "the late completion is answered", wasRefused); err != nil {
		return err
	}
	return s.until(ctx, "four orders are in the mail", func() bool { return s.completed[demoMail] == 4 })
}

// killSupervisor: the supervisor dies while both packers are in the middle of an
// order, and is started again.
func (s *demoStage) killSupervisor(ctx context.Context) error {
	packing := []string{"pack order 5", "pack order 6"}
	for _, name := range packing {
		s.wanted[name] = true
	}
	s.story.act("two more orders are sent")
	if err := s.send(ctx, 5, 6); err != nil {
		return err
	}
	for _, name := range packing {
		if err := s.until(ctx, name+" has begun", func() bool { return s.held[name].PID != 0 }); err != nil {
			return err
		}
		s.cutOff(s.held[name], demoOrphaned)
	}
	s.story.act(fmt.Sprintf("SIGKILL to the supervisor, pid %d, two orders half packed", s.supervisor.pid))
	if err := s.fall(func() error { s.supervisor.kill(); return nil }); err != nil {
		return err
	}
	s.story.act("the supervisor is started again")
	return s.raise(ctx)
}
