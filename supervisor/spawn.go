package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/capture"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// maxResult is the most of a task's stdout that becomes its result, in bytes;
// all of a longer one is in a file.
const maxResult = 1 << 20

// spawn makes a process for the slot: for a task, c holds lease and claim
// already; for a long-lived one it is made here, with the end of the slot's last
// process, where that is not on record yet; nil = it is. It posts spawned, or what kept
// it from that, after which nothing of the start is left.
//
//  1. Lease (and claim, and the end of the last process) are durable. A crash here
//     leaves them without a process; the next start recovers them.
//  2. The process runs. A crash here is found by the identity in its environment.
//  3. Its number and start time are on record.
//  4. It is given its channel, and counts.
func (s *slot) spawn(ctx context.Context, c *child, d *definition, last *child) {
	if s.sup.pace.enter(ctx) {
		defer s.sup.pace.leave()
	}
	if c == nil {
		lease, err := s.lease(ctx, d, last)
		if err != nil {
			s.post(func() { s.unspawned(d, err) })
			return
		}
		c = newChild(s, d, lease.Holder())
	}
	if err := s.launch(ctx, c); err != nil {
		if ctx.Err() == nil {
			s.log.Warn("process not started", whyNot(d, err)...)
		}
		s.unstart(ctx, c, s.event(protocol.EventSpawnFailed, err.Error()))
		s.post(func() { s.unspawned(d, err) })
		return
	}
	s.post(func() {
		s.child = c
		s.history.starts++
		s.sup.tallies.started(s.name.Actor, c.task == nil && s.history.starts > 1)
		s.step(spawned)
		s.catchUp(c)
	})
}

// whyNot is what the log says of a start of d that failed: where its command was looked
// for, which is long, only once.
func whyNot(d *definition, err error) []any {
	said := []any{"err", err}
	if start, ok := errors.AsType[*process.StartError](err); ok && start.Folders != "" && d.toldPath.CompareAndSwap(false, true) {
		said = append(said, "path", start.Folders)
	}
	return said
}

// lease acquires the slot's lease for a process of d, and records the end of the last
// one before it: by one commit, or by two where that is refused.
func (s *slot) lease(ctx context.Context, d *definition, last *child) (fence.Lease, error) {
	p, ttl, ev := fence.NewProcess(), d.spec.LeaseTTL, s.event(protocol.EventStarted, "")
	if last == nil {
		return s.sup.box.Begin(ctx, s.name, p, ttl, ev)
	}
	outcome, ended := s.workerEnd(ctx, last)
	lease, err := s.sup.recovery.DiedWithSuccessor(ctx, last.holder, outcome, ended, mailbox.Successor{Process: p, TTL: ttl, Event: ev})
	if err == nil {
		s.ended(last)
		return lease, nil
	}
	s.endWorker(ctx, last)
	s.ended(last)
	return s.sup.box.Begin(ctx, s.name, p, ttl, ev)
}

// launch starts c's process. Where it returns an error nothing of it is left but
// lease and claim.
func (s *slot) launch(ctx context.Context, c *child) (err error) {
	var ends ends
	defer ends.close()
	defer func() {
		if err != nil {
			s.discard(c)
		}
	}()

	spec := process.Spec{Argv: c.def.spec.Command, Dir: c.def.spec.Cwd, Umask: c.def.spec.Umask,
		NoFile: c.def.spec.Limits.NoFile, Memory: c.def.spec.Limits.Memory, Pids: c.def.spec.Limits.Pids,
		Mark: string(c.holder.Process), Cgroup: fmt.Sprintf("%s.%d", s.name.Actor, s.name.Number)}
	if spec.Memory > 0 || spec.Pids > 0 {
		// At the first one that asks for it: it moves the supervisor to a cgroup of
		// its own.
		if err := s.sup.host.EnableLimits(); err != nil {
			return fmt.Errorf("limits of memory and pids cannot be kept: %w", err)
		}
	}
	account, err := c.def.account()
	if err != nil {
		return err
	}
	spec.Credential, c.uid = account.credential, account.uid()
	ours := c.identity(s.sup.socket, c.def.spec.LeaseTTL, time.Now())
	if c.task != nil {
		if err := s.makeWorkspace(c, account); err != nil {
			return err
		}
		ours = append(ours, message(*c.task, c.space)...)
	}
	if c.def.spec.Mode == config.Worker {
		ours = append(ours, fmt.Sprintf("SOVEREIGN_FD=%d", channelFD))
	}
	if c.asksToNotify() {
		if c.socket, err = s.sup.listenNotify(); err != nil {
			return err
		}
		if err := c.socket.allow(account); err != nil {
			return err
		}
		ours = append(ours, c.socket.env(c.def.spec.Watchdog)...)
	}
	spec.Env = overlay(account.env, ours...)
	if err := s.pipes(c, &spec, &ends); err != nil {
		return err
	}
	var conn net.Conn
	if c.def.spec.Mode == config.Worker && s.sup.attacher != nil {
		if conn, spec.Channel, err = socketpair(); err != nil {
			return err
		}
		ends.add(spec.Channel)
		c.channel.expect()
	}
	c.startedAt, c.startedOn = s.sup.now(), time.Now()
	c.aliveAt.Store(int64(c.startedAt))
	s.sup.living.add(c) // before its program can ask for anything
	if c.proc, err = s.sup.host.Start(ctx, spec); err != nil {
		if conn != nil {
			conn.Close()
		}
		return err
	}
	if c.socket != nil {
		c.socket.serve(c, c.uid)
	}
	if c.task != nil {
		c.task.Body = nil
	}
	if err := s.sup.records.put(s.name, record{Process: c.holder.Process, Identity: c.proc.ID(), Cgroup: c.proc.Cgroup()}); err != nil {
		// It can be found by its environment too, so it may go on.
		s.log.Warn("process not recorded", "pid", c.proc.PID(), "err", err)
	}
	if conn != nil {
		c.channel.serve(s.sup.attacher.Attach(conn, c.holder))
	}
	s.log.Info("process started", "pid", c.proc.PID(), "token", c.holder.Token)
	return nil
}

// pipes makes the child's stdin, stdout and stderr.
func (s *slot) pipes(c *child, spec *process.Spec, ends *ends) (err error) {
	logs, err := s.openLog(c.def.spec.Log)
	if err != nil {
		return err
	}
	if spec.Stderr, _, err = logs.Pipe(capture.Stderr, c.holder.Process.Short(), &c.output.tail); err != nil {
		return err
	}
	ends.add(spec.Stderr)
	if c.task == nil {
		spec.Stdout, _, err = logs.Pipe(capture.Stdout, c.holder.Process.Short())
	} else {
		c.output.result = capture.NewResult(maxResult, s.sup.resultFile(c), s.resultBound(c))
		spec.Stdout, _, err = c.output.result.Pipe()
	}
	if err != nil {
		return err
	}
	ends.add(spec.Stdout)
	if c.task != nil && len(c.task.Body) > 0 {
		if spec.Stdin, err = bodyFile(c.task.Body); err != nil {
			return err
		}
		ends.add(spec.Stdin)
	}
	return nil
}

// resultBound is how much the stdout of a task may be: with more it is killed. Its
// attempt then fails; that a part of a result is taken for all of it is never so. It is
// noted once: the program before this one may have done so for the same child.
func (s *slot) resultBound(c *child) capture.Bound {
	most := config.FormatSize(c.def.spec.ResultMax)
	return capture.Bound{Max: c.def.spec.ResultMax, Over: func() {
		s.post(func() {
			if !c.tooLarge {
				c.tooLarge = true
				s.sup.note(c, protocol.EventResultTooLarge, "message "+c.ref().ID.String()+" wrote more than "+most)
			}
			s.killNow(c, byResult, most, c.ref())
		})
	}}
}

// openLog returns the slot's log, opened by the first process.
func (s *slot) openLog(l config.Log) (*capture.Log, error) {
	if logs := s.logs.Load(); logs != nil {
		return logs, nil
	}
	logs, err := capture.Open(filepath.Join(s.sup.data, "logs"), s.name.Actor, s.name.Number,
		capture.Options{File: l.File, MaxSize: l.MaxSize, Keep: l.Keep, Files: s.sup.files}, s.sup.console)
	if err == nil {
		s.logs.Store(logs)
		s.sup.tallies.opened(s.name, logs)
	}
	return logs, err
}

// discard takes back what launch has made for a process that was not started.
func (s *slot) discard(c *child) {
	s.sup.living.drop(c)
	c.socket.close()
	ctx, cancel := context.WithTimeout(context.Background(), drainBound)
	defer cancel()
	if logs := s.logs.Load(); logs != nil {
		_ = logs.Drain(ctx) // nothing was written
	}
	if c.output.result != nil {
		_ = c.output.result.Drain(ctx)
	}
	s.dropWorkspace(c)
}

// unstart ends lease and claim of a process that was not started, with ev in the
// same transaction. The claim is no attempt: its message goes back uncharged.
func (s *slot) unstart(ctx context.Context, c *child, ev mailbox.Event) {
	s.insist(ctx, c, func(ctx context.Context) error {
		if c.task != nil {
			return s.sup.box.Unstart(ctx, c.holder, c.ref(), ev)
		}
		_, err := s.sup.recovery.Died(ctx, c.holder, mailbox.Outcome{Verdict: mailbox.GiveBack, Category: mailbox.CategoryReleased, ExitCode: -1}, ev)
		return err
	})
}

// event is an event of the slot, without a process.
func (s *slot) event(kind protocol.EventKind, text string) mailbox.Event {
	return mailbox.Event{At: time.Now(), Kind: kind, Actor: s.name.Actor, Slot: s.name.Number, Text: text}
}

// ends are the child's ends of what it inherits; ours are closed once it has
// them.
type ends []*os.File

func (e *ends) add(f *os.File) { *e = append(*e, f) }

func (e *ends) close() {
	for _, f := range *e {
		f.Close()
	}
}

// socketpair makes a worker's channel: our end, and the child's, which blocks, as
// shells and other languages expect.
func socketpair() (net.Conn, *os.File, error) {
	fds, err := socketpairCloexec()
	if err != nil {
		return nil, nil, refusal.Of(fmt.Errorf("make a worker's channel: %w", err))
	}
	ours := os.NewFile(uintptr(fds[0]), "channel")
	theirs := os.NewFile(uintptr(fds[1]), "channel of the child")
	defer ours.Close() // FileConn makes its own
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a worker's channel: %w", err)
	}
	return conn, theirs, nil
}
