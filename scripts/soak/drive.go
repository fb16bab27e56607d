package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sovereign-run/sovereign/protocol"
)

// A Run is one run of the driver. One goroutine carries out the steps; what an
// operator asks is asked beside it.
type Run struct {
	folder, binary string
	seed           uint64
	count          Counts

	rec        *Recorder
	supervisor *Supervisor
	generation int
	frozen     atomic.Bool // the supervisor is stopped

	asking errgroup.Group
	thaws  sync.WaitGroup
	calm   context.Context // ends when everything that is stopped is continued
	thaw   context.CancelFunc
}

// Counts say what was done.
type Counts struct {
	WorkerKills, WorkerStops, SupervisorKills, SupervisorStops, SupervisorEnds, EarlyKills, Starts, Steps int
}

// drainLimit is how long it may take until all that was sent has ended: on a machine that
// has other things to do many attempts run into their timeout, and are made again.
const drainLimit = 10 * time.Minute

// askers bounds what operators ask at one time.
const askers = 24

// drive breaks things for as long as asked, then lets everything drain and reads
// what is in the store. When it returns no process of the run is left.
func (run *Run) drive(ctx context.Context, period time.Duration) (e Evidence, err error) {
	rec, err := openRecorder(filepath.Join(run.folder, "logs", "operator.jsonl"))
	if err != nil {
		return e, err
	}
	run.rec = rec
	run.calm, run.thaw = context.WithCancel(ctx)
	run.asking.SetLimit(askers)
	defer func() {
		run.thaw()
		if run.supervisor != nil {
			run.supervisor.kill()
		}
		err = errors.Join(err, run.asking.Wait(), rec.Close())
		run.thaws.Wait()
	}()
	if err := run.raise(false); err != nil {
		return e, err
	}
	if err := run.supervisor.up(); err != nil {
		return e, err
	}
	if err := run.disturb(ctx, period); err != nil {
		return e, err
	}
	if err := run.drain(ctx, drainLimit+2*period); err != nil {
		return e, err
	}
	return run.read(ctx)
}

// disturb takes steps until the period is over.
func (run *Run) disturb(ctx context.Context, period time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, period)
	defer cancel()
	plan := newPlan(run.seed)
	for {
		step := plan.Next()
		timer := time.NewTimer(step.After)
		select {
		case <-timer.C:
		case <-run.supervisor.done:
			return fmt.Errorf("the supervisor ended by itself: %w", errors.Join(errors.New("see supervisor.log"), run.supervisor.err))
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		}
		run.count.Steps++
		if err := run.take(ctx, step); err != nil {
			return fmt.Errorf("step %d, %s: %w", step.N, step.Do, err)
		}
	}
}

func (run *Run) take(ctx context.Context, s Step) error {
	later := func(do func(context.Context) error) error {
		run.asking.Go(func() error { return do(context.WithoutCancel(ctx)) })
		return nil
	}
	switch s.Do {
	case stepSend, stepSendKeyed, stepSendWrong:
		return later(func(ctx context.Context) error { return run.send(ctx, s.Send) })
	case stepCancel:
		return later(func(ctx context.Context) error {
			return run.change(ctx, methodCancel, protocol.MethodInboxCancel, []string{"CLAIMED", "NEW", "PARKED"}[s.Pick%3], s.Pick)
		})
	case stepRetry:
		return later(func(ctx context.Context) error {
			return run.change(ctx, methodRetry, protocol.MethodInboxRetry, []string{"DEAD", "PARKED", "DEAD", "CLAIMED", "DONE"}[s.Pick%5], s.Pick)
		})
	case stepDrop:
		return later(func(ctx context.Context) error {
			return run.change(ctx, methodDrop, protocol.MethodInboxDrop, []string{"DONE", "DEAD", "NEW", "CLAIMED", "PARKED"}[s.Pick%5], s.Pick)
		})
	case stepPause:
		name := protocol.ActorParams{Actor: actors[s.Pick%len(actors)].name}
		return later(func(ctx context.Context) error {
			// What a supervisor that is gone did not do is made good by drain.
			if ask(ctx, run.folder, protocol.MethodActorPause, name, nil) == nil {
				run.rest(s.For)
				_ = ask(ctx, run.folder, protocol.MethodActorResume, name, nil)
			}
			return nil
		})
	case stepKillWorker:
		return run.hit(s.Pick, syscall.SIGKILL, 0)
	case stepStopWorker:
		return run.hit(s.Pick, syscall.SIGSTOP, s.For)
	case stepStopSupervisor:
		return run.freeze(s.For)
	}
	return run.replace(ctx, s)
}

// rest is a pause that ends early when the run calms down.
func (run *Run) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-run.calm.Done():
	}
}

// hit sends a signal to one process of the fleet, and SIGCONT after a while where
// one is given.
func (run *Run) hit(pick int, signal syscall.Signal, stopped time.Duration) error {
	pids, err := fleetProcesses(run.folder)
	if err != nil || len(pids) == 0 {
		return err
	}
	pid := pids[pick%len(pids)]
	p, err := os.FindProcess(pid) // from here on the same process or none
	if err != nil || !isOurs(pid, run.folder) {
		return nil
	}
	if p.Signal(signal) != nil {
		return nil // it has ended
	}
	if signal == syscall.SIGKILL {
		run.count.WorkerKills++
		return p.Release()
	}
	run.count.WorkerStops++
	run.thaws.Go(func() {
		run.rest(stopped)
		_ = p.Signal(syscall.SIGCONT) // it may have been killed
		_ = p.Release()
	})
	return nil
}

// freeze stops the supervisor for a while.
func (run *Run) freeze(d time.Duration) error {
	if !run.frozen.CompareAndSwap(false, true) {
		return nil
	}
	s := run.supervisor
	if err := s.proc.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	run.count.SupervisorStops++
	run.thaws.Go(func() {
		run.rest(d)
		_ = s.proc.Signal(syscall.SIGCONT) // it may have been killed
		run.frozen.Store(false)
	})
	return nil
}

// replace ends the supervisor and starts another, some of them killed before they
// have come up. Meanwhile something is sent to the store that nobody has open.
func (run *Run) replace(ctx context.Context, s Step) error {
	ctx = context.WithoutCancel(ctx)
	if s.Do == stepKillSupervisor {
		run.count.SupervisorKills++
		run.supervisor.kill()
	} else {
		run.count.SupervisorEnds++
		if err := run.supervisor.term(ctx); err != nil {
			return err
		}
	}
	if s.Pick%2 == 0 {
		to := recipient(s.Pick / 2)
		if err := run.send(ctx, Sending{Follow: Follow{To: to, Nonce: fmt.Sprintf("1/%d-down", s.N)}, Command: true}); err != nil {
			return err
		}
	}
	run.rest(s.For)
	for early := s.Pick % 3; early > 0; early-- {
		if err := run.raise(false); err != nil {
			return err
		}
		run.rest(time.Duration(rand.New(rand.NewPCG(uint64(s.Pick), uint64(early))).Int64N(int64(400 * time.Millisecond))))
		run.count.EarlyKills++
		run.supervisor.kill()
	}
	if err := run.raise(false); err != nil {
		return err
	}
	return run.supervisor.up()
}

// raise starts the next supervisor.
func (run *Run) raise(calm bool, args ...string) error {
	run.generation++
	run.count.Starts++
	// The lock file is there before anybody asks for it.
	f, err := os.OpenFile(generationLock(run.folder, run.generation), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	run.supervisor, err = startSupervisor(run, run.generation, calm, args...)
	return err
}

// send sends a message, as a command or over the socket.
func (run *Run) send(ctx context.Context, s Sending) error {
	line := Line{Method: protocol.MethodSend, To: s.To, Nonce: s.Nonce, Key: s.Key}
	if s.Command {
		args := []string{"send", s.To, s.Nonce, "--subject", s.Nonce, "--json", "--data", filepath.Join(run.folder, "store")}
		if s.Key != "" {
			args = append(args, "--key", s.Key)
		}
		call := run.rec.Call(line)
		cmd := exec.CommandContext(ctx, run.binary, args...)
		cmd.Env = outside(os.Environ())
		out, _ := cmd.Output() // what it prints says it all
		answer := Line{Kind: kindAnswer, Call: call, Raw: json.RawMessage(bytes.TrimSpace(out))}
		if !json.Valid(answer.Raw) {
			answer.Raw = json.RawMessage("null")
		}
		run.rec.Note(answer)
		return nil
	}
	p := protocol.SendParams{From: "soak", Outgoing: s.outgoing()}
	p.Delay, p.Priority = protocol.Duration(s.Delay), s.Priority
	call := run.rec.Call(line)
	var sent protocol.SendResult
	err := ask(ctx, run.folder, protocol.MethodSend, p, &sent)
	run.rec.Answer(call, Line{ID: sent.ID, Duplicate: sent.Duplicate}, err)
	return nil
}

// change cancels, retries or drops one of the messages in a state. By the time that
// it is asked it may be in another one.
func (run *Run) change(ctx context.Context, as, method, state string, pick int) error {
	var page protocol.Inbox
	if ask(ctx, run.folder, protocol.MethodInboxList, protocol.InboxListParams{State: state, Limit: 500}, &page) != nil || len(page.Messages) == 0 {
		return nil
	}
	m := page.Messages[pick%len(page.Messages)]
	call := run.rec.Call(Line{Method: as, Message: m.ID, Nonce: m.Subject})
	var changed protocol.InboxChanged
	err := ask(ctx, run.folder, method, protocol.InboxIDsParams{IDs: []string{m.ID}}, &changed)
	var answer Line
	if err == nil {
		if len(changed.Results) != 1 {
			return fmt.Errorf("%s of %s was answered with %d results", as, m.ID, len(changed.Results))
		}
		answer.State = changed.Results[0].State
		if changed.Results[0].Error != nil {
			err = changed.Results[0].Error
		}
	}
	run.rec.Answer(call, answer, err)
	return nil
}

// drain lets everything come to its end: nothing is stopped or paused any more, and
// a supervisor works until there is nothing to do, for within at most: on a busy
// machine more may have been sent than could be done meanwhile.
func (run *Run) drain(ctx context.Context, within time.Duration) error {
	run.thaw()
	run.thaws.Wait()
	if err := run.asking.Wait(); err != nil {
		return err
	}
	for _, a := range actors {
		if err := ask(ctx, run.folder, protocol.MethodActorResume, protocol.ActorParams{Actor: a.name}, nil); err != nil {
			return fmt.Errorf("resume %s: %w", a.name, err)
		}
	}
	if err := run.supervisor.term(ctx); err != nil {
		return err
	}
	if err := run.raise(true, "--drain"); err != nil {
		return err
	}
	if err := run.supervisor.ended(ctx, within); err != nil {
		return fmt.Errorf("not everything was worked on: %w", err)
	}
	// 1 says that a message was given up, which is as it should be.
	if exit, failed := errors.AsType[*exec.ExitError](run.supervisor.err); failed && exit.ExitCode() != 1 {
		return fmt.Errorf("drain: %w", run.supervisor.err)
	}
	return nil
}
