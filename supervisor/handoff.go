package supervisor

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/descriptor"
	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
	"github.com/sovereign-run/sovereign/supervisor/capture"
	"github.com/sovereign-run/sovereign/supervisor/process"
)

// Handed is a paused supervisor, for the program that takes its place in the same
// process and on the same store: it inherits the descriptors under their numbers.
// Instants are of the lease clock, which goes on.
type Handed struct {
	Actors        []handedActor `json:"actors"`
	NotifySockets uint64        `json:"notify_sockets"`
}

type handedActor struct {
	Spec    config.Actor `json:"spec"`
	Removed bool         `json:"removed,omitempty"`
	Slots   []handedSlot `json:"slots"`
}

type handedSlot struct {
	Number  int                `json:"number"`
	State   protocol.SlotState `json:"state"`
	Wanted  bool               `json:"wanted"`
	Leaving bool               `json:"leaving,omitempty"`
	Spec    *config.Actor      `json:"spec,omitempty"` // of one that leaves: what it lives by; nil = as its actor
	Clock   fence.Instant      `json:"clock,omitempty"`
	Limit   fence.Instant      `json:"limit,omitempty"`
	Child   *handedChild       `json:"child,omitempty"`

	Starts  int            `json:"starts,omitempty"`
	Streak  int            `json:"streak,omitempty"`
	Ends    []handedEnd    `json:"ends,omitempty"`
	Wait    time.Duration  `json:"wait,omitempty"`
	Success bool           `json:"success,omitempty"`
	Trouble *handedRefusal `json:"trouble,omitempty"`
}

type handedEnd struct {
	At fence.Instant `json:"at"`
	Of []mailbox.Ref `json:"of,omitempty"`
}

type handedRefusal struct {
	Category  refusal.Category `json:"category"`
	Message   string           `json:"message"`
	Why       string           `json:"why,omitempty"`
	Next      string           `json:"next,omitempty"`
	Retryable bool             `json:"retryable,omitempty"`
	// Misdeclared is what the cause says, which is not handed on.
	Misdeclared bool `json:"misdeclared,omitempty"`
}

type handedChild struct {
	Process   fence.Process     `json:"process"`
	Token     fence.Token       `json:"token"`
	OS        process.Inherited `json:"os"`
	Spec      *config.Actor     `json:"spec,omitempty"`     // that it was started by; nil = as its slot
	Outdated  bool              `json:"outdated,omitempty"` // it is not what its slot would start now
	UID       int               `json:"uid"`
	StartedAt fence.Instant     `json:"started_at"`
	StartedOn time.Time         `json:"started_on"`
	AliveAt   fence.Instant     `json:"alive_at"`
	Early     bool              `json:"early,omitempty"`
	Drained   bool              `json:"drained,omitempty"`
	Unleased  bool              `json:"unleased,omitempty"`
	Said      *word             `json:"said,omitempty"`

	Cause cause       `json:"cause,omitempty"`
	Limit string      `json:"limit,omitempty"`
	About mailbox.Ref `json:"about,omitzero"`

	TooLarge bool `json:"too_large,omitempty"`

	Task  *mailbox.Delivery `json:"task,omitempty"`
	Space string            `json:"space,omitempty"`

	Streams []capture.Stream   `json:"streams"`
	Tail    []byte             `json:"tail,omitempty"`
	Result  *capture.Collected `json:"result,omitempty"`

	Channel      *uintptr        `json:"channel,omitempty"`
	ChannelState json.RawMessage `json:"channel_state,omitempty"`
	Notify       *uintptr        `json:"notify,omitempty"`
	NotifyPath   string          `json:"notify_path,omitempty"`
}

// children are those that live, in their order.
func (h *Handed) children() []*handedChild {
	var out []*handedChild
	for i := range h.Actors {
		for j := range h.Actors[i].Slots {
			if c := h.Actors[i].Slots[j].Child; c != nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// Children are the processes that live, in their order.
func (h *Handed) Children() []process.Inherited {
	var out []process.Inherited
	for _, c := range h.children() {
		out = append(out, c.OS)
	}
	return out
}

// FDs are the descriptors of h.
func (h *Handed) FDs() []uintptr {
	var out []uintptr
	for _, c := range h.children() {
		for _, s := range c.Streams {
			out = append(out, s.FD)
		}
		if c.Result != nil && !c.Result.Ended {
			out = append(out, c.Result.FD)
		}
		for _, fd := range []*uintptr{c.Channel, c.Notify} {
			if fd != nil {
				out = append(out, *fd)
			}
		}
	}
	return out
}

// Specs are the declared actors, in their order.
func (h *Handed) Specs() []config.Actor {
	var out []config.Actor
	for _, a := range h.Actors {
		if !a.Removed {
			out = append(out, a.Spec)
		}
	}
	return out
}

// HandOver stops the supervisor where it is, after Hold, and describes it: no slot does
// anything and nothing is read of what children write or say, until resume is called.
// The caller has seen to it that nobody asks for anything meanwhile: the server is
// paused. It is refused, unavailable, and everything goes on as before, where something
// has happened since that is not over when ctx ends.
func (sup *Supervisor) HandOver(ctx context.Context) (h *Handed, cgroups process.Handed, resume func(), err error) {
	for {
		quieted := sup.quietNotify()
		thaw, why := sup.freeze()
		if why == "" {
			h, cgroups, undo, err := sup.describe(ctx)
			resume := func() { undo(); thaw(); quieted() }
			if err != nil {
				resume()
				return nil, cgroups, nil, err
			}
			return h, cgroups, resume, nil
		}
		changed := sup.changes.wait()
		thaw()
		quieted()
		select {
		case <-changed:
		case <-sup.closing:
			return nil, cgroups, nil, stoppingNow()
		case <-ctx.Done():
			return nil, cgroups, nil, refusal.New(refusal.Unavailable, "the processes cannot be passed on now", why, "try again").Later()
		}
	}
}

// quietNotify hears nothing of what children say, until the function is called.
func (sup *Supervisor) quietNotify() (undo func()) {
	var quiet []*child
	for _, c := range sup.living.all() {
		if c.socket != nil && c.proc != nil {
			c.socket.pause()
			quiet = append(quiet, c)
		}
	}
	return func() {
		for _, c := range quiet {
			c.socket.serve(c, c.uid)
		}
	}
}

// freeze has every slot do nothing until thaw is called. why says which is in the
// middle of something; "" = none.
func (sup *Supervisor) freeze() (thaw func(), why string) {
	thawed := make(chan struct{})
	var mu sync.Mutex // guards why
	each(sup.actors(), func(s *slot) {
		frozen := make(chan struct{})
		if s.post(func() {
			if !s.quiet() {
				mu.Lock()
				why = s.name.String() + " is " + s.life.at.String()
				mu.Unlock()
			}
			close(frozen)
			<-thawed
		}) {
			<-frozen
		}
	})
	if sup.enforcing.Load() > 0 {
		why = "a message that was cancelled is being ended"
	}
	return func() { close(thawed) }, why
}

// describe pauses what reads the children's output, and the reaping. Every slot is
// frozen.
func (sup *Supervisor) describe(ctx context.Context) (h *Handed, cgroups process.Handed, undo func(), err error) {
	var paused []*capture.Log
	var results []*capture.Result
	undo = func() {
		sup.host.Resume()
		for _, l := range paused {
			l.Resume()
		}
		for _, r := range results {
			r.Resume()
		}
	}
	cgroups = sup.host.Pause()
	h = &Handed{NotifySockets: sup.notifySockets.Load()}
	for _, a := range sup.actors() {
		ha := handedActor{Spec: *a.def.spec, Removed: a.removed}
		for _, s := range a.all() {
			hs := s.describe()
			if d := s.def.Load(); d != a.def {
				hs.Spec = d.spec
			}
			logs := s.logs.Load()
			if logs != nil {
				streams, err := logs.Pause(ctx)
				paused = append(paused, logs)
				if err != nil {
					return nil, cgroups, undo, refusal.New(refusal.Unavailable, "the output of "+s.name.String()+" cannot be passed on",
						"the disk does not keep up", "try again").Later()
				}
				if hs.Child != nil {
					hs.Child.Streams, hs.Child.Tail = streams, s.child.output.tail.Bytes()
				}
			}
			if hs.Child != nil && s.child.output.result != nil {
				collected := s.child.output.result.Pause()
				results = append(results, s.child.output.result)
				hs.Child.Result = &collected
			}
			ha.Slots = append(ha.Slots, hs)
		}
		h.Actors = append(h.Actors, ha)
	}
	return h, cgroups, undo, nil
}

// describe is the slot between two events.
func (s *slot) describe() handedSlot {
	h := handedSlot{Number: s.name.Number, State: stateNames[s.life.at], Wanted: s.life.want, Leaving: s.leaving,
		Clock: s.clock.instant(), Limit: s.limit.instant(), Starts: s.history.starts, Streak: int(s.history.streak),
		Wait: s.history.wait, Success: s.history.success}
	for _, e := range s.history.budget.ends {
		h.Ends = append(h.Ends, handedEnd{e.at, e.of})
	}
	if r := refusal.Of(s.history.trouble); r != nil {
		h.Trouble = &handedRefusal{r.Category, r.Message, r.Why, r.Next, r.Retryable, misdeclared(s.history.trouble)}
	}
	if c := s.child; c != nil {
		h.Child = c.describe(s.def.Load())
	}
	return h
}

func (c *child) describe(now *definition) *handedChild {
	h := &handedChild{Process: c.holder.Process, Token: c.holder.Token, OS: c.proc.Inherited(), UID: c.uid,
		StartedAt: c.startedAt, StartedOn: c.startedOn, AliveAt: fence.Instant(c.aliveAt.Load()), Early: c.early,
		Drained: c.drained(), Unleased: c.unleased.Load(), Said: c.said.Load(), Cause: c.cause, Limit: c.limit, About: c.about,
		TooLarge: c.tooLarge, Task: c.task, Space: c.space}
	if c.def != now {
		h.Spec, h.Outdated = c.def.spec, c.def.process != now.process
	}
	if ch := c.channel.get(); ch != nil {
		if fd, state, ok := ch.Handed(); ok {
			h.Channel, h.ChannelState = &fd, state
		}
	}
	if c.socket != nil {
		fd := descriptor.Of(c.socket.conn)
		h.Notify, h.NotifyPath = &fd, c.socket.path
	}
	return h
}
