package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/capture"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// Check returns why this program cannot go on from h, before anything of it is touched.
func (h *Handed) Check() error {
	for _, a := range h.Actors {
		for _, s := range a.Slots {
			if _, ok := stateOf(s.State); !ok {
				return fmt.Errorf("slot %s/%d is in a state %q that this version does not know", a.Spec.Name, s.Number, s.State)
			}
		}
	}
	return nil
}

func stateOf(name protocol.SlotState) (state, bool) {
	i := slices.Index(stateNames[:], name)
	return state(i), i > 0
}

// restore makes the slots and children of h. Nothing happens yet: their leases are kept,
// and they are known.
func (sup *Supervisor) restore(h *Handed, processes []*process.Process) {
	sup.handed = h
	sup.notifySockets.Store(h.NotifySockets)
	var fleet []*actor
	for i := range h.Actors {
		ha := &h.Actors[i]
		a := &actor{def: define(&ha.Spec, 0, sup.environ), removed: ha.Removed}
		if !a.removed {
			sup.gate.set(a.name(), a.def.spec.Replicas)
		}
		for _, hs := range ha.Slots {
			d := a.def
			if hs.Spec != nil {
				d = define(hs.Spec, 0, sup.environ)
			}
			s := newSlot(sup, d, hs.Number)
			var p *process.Process
			if hs.Child != nil {
				p, processes = processes[0], processes[1:]
			}
			s.restore(hs, p)
			if hs.Leaving {
				a.leaving = append(a.leaving, s)
			} else {
				a.slots = append(a.slots, s)
			}
		}
		fleet = append(fleet, a)
	}
	sup.fleet.Store(&fleet)
}

// restore makes the slot what it was. Its goroutine does not run yet.
func (s *slot) restore(h handedSlot, p *process.Process) {
	s.life.at, _ = stateOf(h.State)
	s.life.want, s.leaving = h.Wanted, h.Leaving
	s.history = history{starts: h.Starts, streak: streak(h.Streak), wait: h.Wait, success: h.Success}
	for _, e := range h.Ends {
		s.history.budget.ends = append(s.history.budget.ends, counted{e.At, e.Of})
	}
	if r := h.Trouble; r != nil {
		trouble := &refusal.Error{Category: r.Category, Message: r.Message, Why: r.Why, Next: r.Next, Retryable: r.Retryable}
		if r.Misdeclared {
			trouble = trouble.Because(errMisdeclared)
		}
		s.history.trouble = trouble
	}
	now := s.sup.now()
	if h.Child != nil {
		s.child = s.restoreChild(h.Child, p)
		s.watched = p.Exited()
		s.sup.living.add(s.child)
		s.sup.box.Leases().Keep(s.name, s.child.holder.Token)
	}
	s.clock.again(now, h.Clock)
	s.limit.again(now, h.Limit)
	s.publish()
}

func (s *slot) restoreChild(h *handedChild, p *process.Process) *child {
	d := s.def.Load()
	if h.Spec != nil {
		generation := d.process
		if h.Outdated {
			generation--
		}
		d = define(h.Spec, generation, s.sup.environ)
	}
	c := newChild(s, d, fence.Holder{Slot: s.name, Process: h.Process, Token: h.Token})
	c.proc, c.task, c.space, c.uid = p, h.Task, h.Space, h.UID
	c.startedAt, c.startedOn, c.early = h.StartedAt, h.StartedOn, h.Early
	c.cause, c.limit, c.about = h.Cause, h.Limit, h.About
	c.tooLarge = h.TooLarge
	c.aliveAt.Store(int64(h.AliveAt))
	c.unleased.Store(h.Unleased)
	c.said.Store(h.Said)
	if h.Drained {
		c.endClaims()
	}
	_, _ = c.output.tail.Write(h.Tail)
	return c
}

// takeOver has everything go on that the program before this one has passed on.
func (sup *Supervisor) takeOver() {
	sup.listen()
	sup.recovery.Adopted()
	fleet := sup.actors()
	for i := range sup.handed.Actors {
		for _, hs := range sup.handed.Actors[i].Slots {
			for _, s := range fleet[i].all() {
				if s.name.Number == hs.Number && s.leaving == hs.Leaving {
					s.connect(hs.Child)
				}
			}
		}
	}
	sup.handed = nil    // bodies of results, and what channels have read
	sup.changing.Lock() // as in begin
	defer sup.changing.Unlock()
	for _, a := range fleet {
		for _, s := range a.all() {
			sup.own(s)
		}
	}
	for _, a := range fleet {
		for _, s := range a.all() {
			s.post(s.goOn)
		}
	}
	close(sup.running)
}

// connect takes over what the slot's process writes to and hears from. What cannot be
// taken over is logged; the process goes on without.
func (s *slot) connect(h *handedChild) {
	c := s.child
	if c == nil {
		return
	}
	logs, err := s.openLog(s.spec().Log)
	if err != nil {
		s.log.Error("output of a process is not kept any more", "err", err)
	}
	for _, stream := range h.Streams {
		if logs == nil {
			break
		}
		if stream.Name == capture.Stderr {
			_, err = logs.Take(stream, &c.output.tail)
		} else {
			_, err = logs.Take(stream)
		}
		if err != nil {
			s.log.Error("output of a process is not kept any more", "stream", stream.Name, "err", err)
		}
	}
	if h.Result != nil {
		c.output.result = capture.TakeResult(maxResult, s.sup.resultFile(c), s.resultBound(c), *h.Result)
	}
	if h.Channel != nil && s.sup.attacher != nil {
		ch, err := s.sup.attacher.Adopt(*h.Channel, h.ChannelState, c.holder)
		if err != nil {
			s.log.Error("channel of a worker lost", "err", err)
		} else {
			c.channel.serve(ch)
		}
	}
	if h.Notify != nil {
		if c.socket, err = takeNotify(*h.Notify, h.NotifyPath); err != nil {
			s.log.Error("socket for sd_notify lost", "err", err)
		} else {
			c.socket.serve(c, c.uid)
		}
	}
}

// goOn begins anew what the slot waits for. It need not be the first thing that the slot's
// goroutine does: a process that ended meanwhile may have been followed already, by a slot
// that looks for work.
func (s *slot) goOn() {
	switch s.life.at {
	case waiting:
		s.await()
	case idle:
		s.seekAgain()
	case starting:
		if s.child.asksToBeSeen() && !s.child.early {
			s.probe()
		}
	}
	if (s.life.at == starting || s.life.at == up) && s.child != nil && (s.leaving || s.child.drained()) {
		s.finishUp()
	}
}

// takeNotify goes on with a socket that the program before this one has passed on.
func takeNotify(fd uintptr, path string) (*notifySocket, error) {
	f := os.NewFile(fd, path)
	defer f.Close() // FilePacketConn makes its own
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("it is no socket of this machine"), conn.Close())
	}
	return &notifySocket{path: path, conn: local, closed: make(chan struct{})}, nil
}
