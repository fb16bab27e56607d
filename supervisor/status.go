package supervisor

import (
	"errors"
	"os/user"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// A view is a slot as it was at one moment.
type view struct {
	at        state
	pid       int
	process   fence.Process
	token     fence.Token
	startedOn time.Time
	restarts  int
	lost      int64
	trouble   error
	message   mailbox.ID
	child     *child // for what it says of itself
	leaving   bool
}

// ready reports whether the slot counts as ready for what comes after its actor:
// a long-lived process that is, or has done its work; a task slot that takes
// messages.
func (s *slot) ready() bool {
	if s.leaving {
		return false
	}
	if s.spec().Mode == config.Task {
		switch s.life.at {
		case idle, spawning, starting, up, ending:
			return true
		}
		return false
	}
	return s.life.at == up || s.life.at == exited && s.history.success
}

// publish shows everybody how the slot stands now.
func (s *slot) publish() {
	v := &view{at: s.life.at, restarts: max(0, s.history.starts-1), trouble: s.history.trouble, leaving: s.leaving}
	if s.spec().Mode == config.Task {
		v.restarts = 0
	}
	if c := s.child; c != nil && s.life.at.lives() && c.proc != nil {
		v.pid, v.process, v.token, v.startedOn = c.proc.PID(), c.holder.Process, c.holder.Token, c.startedOn
		v.child = c
		if c.task != nil {
			v.message = c.task.ID
		}
	}
	if logs := s.logs.Load(); logs != nil {
		v.lost = logs.Lost()
	}
	s.seen.Store(v)
	s.sup.changes.tell()
	if ready := s.ready(); ready != s.counted {
		s.counted = ready
		s.sup.gate.turn(s.name.Actor, ready)
	}
}

// ActorStatus is one actor as people see it.
type ActorStatus struct {
	Actor  string
	Mode   config.Mode
	State  protocol.SlotState // of its worst slot; ActorPaused where deliveries are paused and nothing is worse
	Paused bool
	Slots  []SlotStatus
}

// SlotStatus is one slot as people see it. What does not apply is zero.
type SlotStatus struct {
	Slot     int
	State    protocol.SlotState
	PID      int
	Process  string // shortened
	Uptime   time.Duration
	Restarts int
	Message  mailbox.ID // that a task works on
	Claims   []mailbox.Ref
	Lease    Lease
	LogLost  int64 // bytes of output that could not be kept
	Why      string
	Next     string // what a person can run about it

	// What its process says of itself by sd_notify.

	Says                string // its STATUS
	Reloading, Stopping bool
}

// Lease is a slot's lease as people see it.
type Lease struct {
	Token     fence.Token
	Remaining time.Duration
}

// Status returns the actors, in the order of the file. It never waits.
func (sup *Supervisor) Status() []ActorStatus {
	now := time.Now()
	fleet := sup.actors()
	out := make([]ActorStatus, 0, len(fleet))
	for _, a := range fleet {
		onRecord, _ := sup.box.Actor(a.name()) // one that is not was not paused
		st := ActorStatus{Actor: a.name(), Mode: a.def.spec.Mode, Paused: onRecord.Paused}
		worst := state(0)
		for _, s := range a.all() {
			v := s.seen.Load()
			st.Slots = append(st.Slots, s.status(v, now))
			if severity(v.at) > severity(worst) {
				worst = v.at
			}
		}
		st.State = stateNames[worst]
		if st.Paused && severity(worst) < severity(backoff) {
			st.State = protocol.ActorPaused
		}
		out = append(out, st)
	}
	return out
}

// HasFailed reports whether every slot of the actor has failed, so that nobody works on
// its messages before a person starts it. An actor that is not known has not failed.
func (sup *Supervisor) HasFailed(name string) bool {
	a, err := sup.actor(name)
	if err != nil {
		return false
	}
	slots := a.all()
	return len(slots) > 0 && !slices.ContainsFunc(slots, func(s *slot) bool { return s.seen.Load().at != failed })
}

func (s *slot) status(v *view, now time.Time) SlotStatus {
	st := SlotStatus{Slot: s.name.Number, State: stateNames[v.at], PID: v.pid, Restarts: v.restarts, Message: v.message, LogLost: v.lost}
	if v.pid != 0 {
		st.Process = v.process.Short()
		st.Uptime = now.Sub(v.startedOn)
		said := v.child.word()
		st.Says, st.Reloading, st.Stopping = said.Status, said.Reloading, said.Stopping
		st.Claims = s.sup.box.Held(v.process)
		st.Lease.Token = v.token
		if s.sup.box.Leases().Kept(s.name, v.token) {
			st.Lease.Remaining = s.spec().LeaseTTL
		}
	}
	if v.trouble != nil {
		r := refusal.Of(v.trouble)
		st.Why, st.Next = r.Error(), r.Next
	}
	if v.leaving && v.trouble == nil {
		st.Why, st.Next = "it is not declared any more, and finishes what it has", "sovereign stop "+s.name.Actor
	}
	if v.trouble == nil && !v.leaving && (v.at == starting || v.at == up) && v.child.drained() {
		st.Why, st.Next = "it was to go and is back: its process finishes what it has, and then a new one is started", "sovereign restart "+s.name.Actor
	}
	switch v.at {
	case failed:
		st.Next = "sovereign start " + s.name.Actor
	case backoff:
		st.Next = "sovereign restart " + s.name.Actor
	case stopped:
		st.Next = "sovereign start " + s.name.Actor
	}
	if (v.at == failed || v.at == backoff) && misdeclared(v.trouble) {
		st.Next = correctIt + "; or mend what they name, then run " + st.Next
	}
	return st
}

// correctIt is what a person can do about a command or a user that is not there.
const correctIt = "correct its command, cwd, env, user or limits in actors.yaml, then run sovereign reload"

// errMisdeclared is in the place of a cause that a supervisor before this one has seen.
var errMisdeclared = errors.New("what its declaration names is not there")

// misdeclared reports whether a start has failed for what the actor's declaration names:
// it does so again until either is corrected.
func misdeclared(err error) bool {
	if start, ok := errors.AsType[*process.StartError](err); ok {
		return start.Errno != 0 && !start.Temporary()
	}
	_, noUser := errors.AsType[user.UnknownUserError](err)
	_, noUID := errors.AsType[user.UnknownUserIdError](err)
	_, noGroup := errors.AsType[user.UnknownGroupError](err)
	return noUser || noUID || noGroup || errors.Is(err, errMisdeclared)
}

// severity orders states by how much a person wants to know of them.
func severity(s state) int {
	switch s {
	case stuck:
		return 9
	case failed:
		return 8
	case backoff:
		return 7
	case waiting:
		return 6
	case stopping, ending, withdrawing:
		return 5
	case starting, spawning:
		return 4
	case up:
		return 3
	case idle:
		return 2
	case exited, stopped:
		return 1
	}
	return 0
}
