package main

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/server"
	"github.com/sovereign-run/sovereign/supervisor"
)

// An operator is a running supervisor as people ask it (server.Supervisor).
type operator struct {
	*supervisor.Supervisor
	reloads *reloader
	*upgrader
	config  string    // path of actors.yaml
	started time.Time // with its monotonic part: the wall clock may be set back behind it
}

var _ server.Supervisor = operator{}

// Status is the supervisor's status on the wire.
func (o operator) Status() protocol.Status {
	out := protocol.Status{Supervisor: protocol.SupervisorStatus{StartedAt: o.started.UTC(), Config: o.config,
		Uptime: lasted(time.Since(o.started), time.Second)}}
	for _, a := range o.Supervisor.Status() {
		actor := protocol.ActorStatus{Actor: a.Actor, Mode: string(a.Mode), State: a.State, Paused: a.Paused}
		for _, s := range a.Slots {
			slot := o.slot(a.Actor, s)
			if actor.Why == "" && slot.State == a.State {
				actor.Why = slot.Why
			}
			actor.Slots = append(actor.Slots, slot)
		}
		out.Actors = append(out.Actors, actor)
	}
	return out
}

// lasted is how long something has lasted, for people. Where the wall clock was set back
// behind its beginning, and nothing else tells when that was, it is 0: a negative span of
// time is none on the wire, and whoever asked could read nothing of the answer.
func lasted(d, unit time.Duration) protocol.Duration { return protocol.Duration(max(0, d.Round(unit))) }

func (o operator) slot(actor string, s supervisor.SlotStatus) protocol.SlotStatus {
	out := protocol.SlotStatus{Slot: s.Slot, State: s.State, PID: s.PID, Process: s.Process,
		Uptime: lasted(s.Uptime, time.Millisecond), Restarts: s.Restarts, Why: s.Why, Next: s.Next, LogLost: s.LogLost,
		Says: s.Says, Reloading: s.Reloading, Stopping: s.Stopping}
	for _, ref := range s.Claims {
		out.Claims = append(out.Claims, protocol.SlotClaim{ID: ref.ID.String(), Token: protocol.Token(ref.Token)})
	}
	if s.Lease.Token != 0 {
		out.Lease = &protocol.SlotLease{Token: protocol.Token(s.Lease.Token), RemainingMS: s.Lease.Remaining.Milliseconds()}
	}
	return out
}

// Reload has the supervisor go by its file as it is now.
func (o operator) Reload(ctx context.Context, dryRun bool) (protocol.Reload, error) {
	return o.reloads.Reload(ctx, dryRun)
}

// Cancel ends a running attempt that the mailbox has marked cancelled.
func (o operator) Cancel(ctx context.Context, h fence.Holder, ref mailbox.Ref) error {
	return o.Supervisor.EndCancelled(ctx, h, ref)
}

// channels gives the supervisor the server that is made after it: the server
// asks the supervisor who lives, the supervisor has the server talk to those who
// live.
type channels struct{ server *server.Server }

func (c *channels) Adopt(fd uintptr, state json.RawMessage, h fence.Holder) (supervisor.Channel, error) {
	return c.server.AdoptChannel(fd, state, h)
}

func (c *channels) Attach(conn net.Conn, h fence.Holder) supervisor.Channel {
	return c.server.Attach(conn, h)
}
