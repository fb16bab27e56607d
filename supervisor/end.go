package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// drainBound is the longest that is waited for the last output of a process that
// has ended.
const drainBound = 5 * time.Second

// end ends c whole, in this order, and posts that it is gone:
//
//  1. Nothing of its tree is left. Before that its message is not handed out
//     again (P4.5), and no successor starts.
//  2. What it wrote is drained, and its channel closed.
//  3. Its end is on record, in one transaction (P4.3), which is that of the next start
//     where there is one at once. A crash before that leaves lease and claim on record;
//     the next start recovers them as worker_lost.
//  4. Its workspace is reclaimed (P4.6). A crash before that leaves a workspace
//     that the next start reclaims.
func (s *slot) end(ctx context.Context, c *child) {
	s.sup.box.Withhold(c.holder.Process)
	if err := s.endTree(ctx, c); err != nil {
		s.log.Warn("process left behind", "pid", c.proc.PID(), "err", err)
		c.socket.close()
		return // the supervisor has ended; the next one finds it
	}
	if ch := c.channel.get(); ch != nil {
		ch.Close() // what it asked for before its end is carried out in its name
	}
	c.socket.close()
	s.sup.living.drop(c)
	drained, cancel := context.WithTimeout(ctx, drainBound)
	defer cancel()
	if err := s.logs.Load().Drain(drained); err != nil {
		s.log.Warn("output not drained", "err", err)
	}
	held := s.sup.box.Held(c.holder.Process)
	if c.task == nil && s.startSuccessor(c, held) {
		return
	}
	if s.sup.pace.enter(ctx) {
		defer s.sup.pace.leave()
	}
	if c.task != nil {
		s.endTask(ctx, drained, c)
	} else {
		s.endWorker(ctx, c)
	}
	s.ended(c)
	s.post(func() { s.gone(c, held) })
}

// ended says that c's end is on record.
func (s *slot) ended(c *child) {
	e := c.death()
	s.sup.tallies.ended(s.name.Actor, e)
	s.log.Info("process ended", "pid", c.proc.PID(), "cause", e.cause.String(), "how", e.how())
}

// startSuccessor starts another process at once where the slot is to have one, now that
// nothing of c but what is on record is left, and reports whether it does. The start records
// the end of c, which held those messages, in its own transaction: there is one commit
// between the two processes.
func (s *slot) startSuccessor(c *child, held []mailbox.Ref) (starts bool) {
	s.call(func() {
		if starts = s.hasSuccessor(c, held); !starts {
			return
		}
		s.last = c
		s.gone(c, held)
		if s.last == nil {
			return
		}
		// What it comes after has ended at this moment, and so no start has taken it.
		s.last, s.owing = nil, true
		s.sup.job(func(ctx context.Context) {
			s.endWorker(ctx, c)
			s.ended(c)
			s.post(func() {
				s.owing = false
				s.sup.changes.tell()
				s.seekAgain()
			})
		})
	})
	return starts
}

// endTree returns nil once nothing of c's tree is left. Where something does not
// die, it says so and tries on for as long as it takes, or until ctx ends.
func (s *slot) endTree(ctx context.Context, c *child) error {
	err := c.proc.KillTree(ctx)
	if err == nil {
		return nil
	}
	stuck := err // err goes on below, beside what is posted
	s.post(func() {
		s.history.trouble = refusal.New(refusal.Failed, stuck.Error(), "the system does not end it",
			"find out what it waits for (ps -o stat,wchan), then run `sovereign restart "+s.name.Actor+"`").Because(stuck)
		s.sup.note(c, protocol.EventStuck, stuck.Error())
		s.step(unkillable)
	})
	for wait := insistMost; err != nil; wait = min(2*wait, time.Minute) {
		if err = c.proc.WaitTree(ctx); err == nil {
			break
		}
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
		err = c.proc.KillTree(ctx)
	}
	s.sup.note(c, protocol.EventUnstuck, "")
	return nil
}

// pause waits for d, and reports whether it did before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// killAgain sends SIGKILL to what is stuck once more. end goes on when it is gone.
func (s *slot) killAgain(ctx context.Context, c *child) {
	if c != nil {
		_ = c.proc.KillTree(ctx) // that it is stuck is known
	}
}

// endTask records how the task ended, and reclaims its workspace.
func (s *slot) endTask(ctx, drained context.Context, c *child) {
	if err := c.output.result.Drain(drained); err != nil {
		s.log.Warn("stdout not drained", "err", err)
	}
	data, path, size, err := c.output.result.Bytes()
	if path != "" {
		data = cutResult(data, path, size, err)
	}
	e := c.death()
	if c.output.result.Over() {
		e.over = config.FormatSize(c.def.spec.ResultMax)
	}
	o := e.task(data, path != "")
	if !s.insist(ctx, c, func(ctx context.Context) error {
		_, err := s.sup.box.EndTask(ctx, c.holder, c.ref(), o)
		return err
	}) {
		return // the next start records its end, and reclaims what it left
	}
	if o.Verdict != mailbox.Complete {
		s.sup.dropResult(path)
	}
	s.reclaim(c, o.Verdict == mailbox.Complete)
}

// cutResult is the result of a task that wrote more than may be one: its
// beginning, and where all of it is.
func cutResult(data []byte, path string, size int64, err error) []byte {
	note := fmt.Sprintf("\n[sovereign: cut here; all %d bytes are in %s]\n", size, path)
	if err != nil {
		note = fmt.Sprintf("\n[sovereign: cut here; of %d bytes, what could be kept is in %s: %v]\n", size, path, err)
	}
	return append(data[:min(len(data), maxResult-len(note))], note...)
}

// endWorker records the end of a long-lived process.
func (s *slot) endWorker(ctx context.Context, c *child) {
	outcome, ev := s.workerEnd(ctx, c)
	s.insist(ctx, c, func(ctx context.Context) error {
		_, err := s.sup.recovery.DiedWith(ctx, c.holder, outcome, ev)
		return err
	})
}

// workerEnd is what is to be recorded of the end of a long-lived process: how each of
// its attempts ended, and the event. What it wrote before it was given what it held says
// nothing of that.
func (s *slot) workerEnd(ctx context.Context, c *child) (outcome func(mailbox.Ref) mailbox.Outcome, ev mailbox.Event) {
	e := c.death()
	text := e.withOutput(e.how())
	if e.cause != byItself {
		text = e.how() + " (" + e.cause.String() + ")"
	}
	ev = s.event(protocol.EventExited, text)
	ev.Process, ev.Token = c.holder.Process, c.holder.Token
	if e.last != "" {
		e.last = c.output.tail.Since(s.firstClaim(ctx, c))
	}
	return e.of(c.about), ev
}

// firstClaim is when c was given the first of the messages that it still holds; the zero
// time where that is not known.
func (s *slot) firstClaim(ctx context.Context, c *child) (first time.Time) {
	held := s.sup.box.Held(c.holder.Process)
	for _, ref := range held[:min(len(held), 64)] { // as a rule one, or as many as it has threads
		m, err := s.sup.box.Show(ctx, ref.ID)
		if err != nil || m.Claim == nil || m.Claim.Token != ref.Token {
			return time.Time{}
		}
		if first.IsZero() || m.Claim.StartedAt.Before(first) {
			first = m.Claim.StartedAt
		}
	}
	return first
}

// The wait between two tries to record an end that the store did not take.
const (
	insistFirst = 100 * time.Millisecond
	insistMost  = 5 * time.Second
)

// insist has write record the end of c, see Supervisor.insist.
func (s *slot) insist(ctx context.Context, c *child, write func(context.Context) error) bool {
	return s.sup.insist(ctx, s.log, c.holder.Process, write)
}

// insist has write record an end, again and again while the store does not take
// it, for want of space or for an error of the disk: nothing of it is stored, the
// message must not be handed out again before, and without its end the lease is
// held for ever. A fence that has moved on is an answer. An unknown outcome ends
// the supervisor (P4.10). A closing supervisor does not wait: the next start
// recovers what is on record. It reports whether there was an answer.
func (sup *Supervisor) insist(ctx context.Context, log *slog.Logger, p fence.Process, write func(context.Context) error) bool {
	for wait := insistFirst; ; wait = min(2*wait, insistMost) {
		err := write(ctx)
		switch {
		case err == nil:
			return true
		case refusal.Has(err, refusal.OutcomeUnknown):
			sup.fail(err)
			return false
		case answers(err):
			log.Warn("end not recorded as it was", "process", p.Short(), "err", err)
			return true
		}
		log.Error("end not recorded yet", "process", p.Short(), "err", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sup.closing:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// answers reports whether a refusal to record an end comes from the fence, after
// what there was to record is on record.
func answers(err error) bool {
	switch refusal.Of(err).Category {
	case refusal.ActorLeaseLost, refusal.LeaseExpired, refusal.LeaseCorrupt, refusal.FencingTokenStale, refusal.AlreadySettled,
		refusal.MessageMissing, refusal.NotAddressee, refusal.WrongState:
		return true
	}
	return false
}
