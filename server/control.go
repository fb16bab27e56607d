package server

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/sovereign-run/sovereign/fence"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/protocol"
	"github.com/sovereign-run/sovereign/refusal"
)

// Supervisor is what people ask of a running supervisor. Its errors are
// refusals; for an actor that it does not know, unknown_actor.
type Supervisor interface {
	// Status is the state of everything, without what waits in the inboxes.
	Status() protocol.Status
	// HasFailed reports whether the actor has failed: no slot of it works on before a
	// person starts it. One that is not known has not.
	HasFailed(actor string) bool
	// Start, Stop and Restart return once that is under way and, for Start
	// and Stop, durable.
	Start(ctx context.Context, actor string) error
	Stop(ctx context.Context, actor string) error
	Restart(ctx context.Context, actor string) error
	// Signal sends a signal, named with or without SIG, to every process of
	// the actor.
	Signal(ctx context.Context, actor, signal string) error
	// Pause and Resume stop and start deliveries, durably.
	Pause(ctx context.Context, actor string) error
	Resume(ctx context.Context, actor string) error
	// Cancel ends a running attempt that the mailbox has marked cancelled, and
	// returns once it has ended or ctx has.
	Cancel(ctx context.Context, h fence.Holder, ref mailbox.Ref) error
	// ReopenLogs has every log go on in a file of its name, made anew where
	// somebody moved it.
	ReopenLogs()
	// Reload reads actors.yaml again and has the supervisor go by it, or with dryRun
	// says what that would do. A file that is refused is a *config.Problems, and
	// changes nothing.
	Reload(ctx context.Context, dryRun bool) (protocol.Reload, error)
	// Upgrade has another program take the supervisor's place, and returns, once that
	// is about to happen, a name for Upgraded. Where the program is refused, everything
	// goes on as before.
	Upgrade(ctx context.Context, binary string) (id string, err error)
	// Upgraded waits until the upgrade is over, and returns what has come of it. It may
	// be asked of the program that came after the one that was asked for it.
	Upgraded(ctx context.Context, id string) (protocol.Upgrade, error)
	// Shutdown begins the end of the supervisor and returns at once.
	Shutdown()
}

// Control answers what people ask, over control.sock or, with the store opened
// by the command itself, in process: each command has this one implementation.
type Control struct {
	box        *mailbox.Box
	supervisor Supervisor // nil: the store is stopped
	version    string
	data       string
	storage    Storage // nil: the database itself is not asked
	metrics    Metrics // nil: there are none
}

// NewControl returns the handler of people's requests. A nil supervisor means
// that none runs: then what needs one is refused, unavailable, and start, stop,
// pause and resume are only recorded. version is the program's, data the
// folder of the store.
func NewControl(box *mailbox.Box, supervisor Supervisor, version, data string) *Control {
	return &Control{box: box, supervisor: supervisor, version: version, data: data}
}

// Handle answers one request in process. The result is the method's result
// type of package protocol; the error is a refusal. What waits, waits until ctx
// ends.
func (c *Control) Handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	m, ok := requests[method]
	if !ok {
		return nil, unknownMethod(method).err
	}
	return m(c, asking{run: ctx, wait: ctx, call: &call{}}, method, params)
}

func (c *Control) handle(run, wait context.Context, in *call) answer {
	m, ok := requests[in.req.Method]
	if !ok {
		return unknownMethod(in.req.Method)
	}
	result, err := m(c, asking{run: run, wait: wait, call: in}, in.req.Method, in.req.Params)
	if again, ok := errors.AsType[askAgain](err); ok {
		again.req.ID = in.req.ID
		return answer{again: &again.req}
	}
	if err != nil {
		return refuse(err)
	}
	return answer{result: result}
}

type asking struct {
	run, wait context.Context
	*call     // without a link in process
}

type request func(c *Control, in asking, method string, params json.RawMessage) (any, error)

// on makes a request of a function of the decoded params.
func on[P any](fn func(c *Control, in asking, p P) (any, error)) request {
	return func(c *Control, in asking, method string, params json.RawMessage) (any, error) {
		var p P
		if err := protocol.ParseParams(method, params, &p); err != nil {
			return nil, err
		}
		return fn(c, in, p)
	}
}

var requests = map[string]request{
	protocol.MethodHello:  on((*Control).hello),
	protocol.MethodStatus: on((*Control).status),

	protocol.MethodInboxList:   on((*Control).inboxList),
	protocol.MethodInboxShow:   on((*Control).inboxShow),
	protocol.MethodInboxRetry:  on((*Control).inboxRetry),
	protocol.MethodInboxCancel: on((*Control).inboxCancel),
	protocol.MethodInboxDrop:   on((*Control).inboxDrop),
	protocol.MethodInboxPurge:  on((*Control).inboxPurge),
	protocol.MethodInboxImport: on((*Control).inboxImport),
	protocol.MethodInboxFollow: on((*Control).inboxFollow),
	protocol.MethodSend:        on((*Control).send),
	protocol.MethodSendBatch:   on((*Control).sendBatch),
	protocol.MethodAwait:       on((*Control).await),

	protocol.MethodActorStart:   on((*Control).actorStart),
	protocol.MethodActorStop:    on((*Control).actorStop),
	protocol.MethodActorRestart: on((*Control).actorRestart),
	protocol.MethodActorSignal:  on((*Control).actorSignal),
	protocol.MethodActorPause:   on((*Control).actorPause),
	protocol.MethodActorResume:  on((*Control).actorResume),
	protocol.MethodReload:       on((*Control).reload),
	protocol.MethodShutdown:     on((*Control).shutdown),
	protocol.MethodUpgrade:      on((*Control).upgrade),
	protocol.MethodUpgraded:     on((*Control).upgraded),

	protocol.MethodMetrics:     on((*Control).writeMetrics),
	protocol.MethodLogsReopen:  on((*Control).reopenLogs),
	protocol.MethodEventsList:  on((*Control).eventsList),
	protocol.MethodLeasesList:  on((*Control).leasesList),
	protocol.MethodLeasesReset: on((*Control).leasesReset),
	protocol.MethodVerify:      on((*Control).verify),
	protocol.MethodBackup:      on((*Control).backup),
}

func (c *Control) hello(asking, protocol.Empty) (any, error) {
	return protocol.HelloResult{Version: c.version, Protocol: protocol.Version, PID: os.Getpid(), Running: c.supervisor != nil}, nil
}

func (c *Control) leasesList(in asking, _ protocol.Empty) (any, error) {
	records, err := c.box.Leases().List(in.run)
	if err != nil {
		return nil, err
	}
	out := protocol.Leases{Leases: make([]protocol.Lease, len(records))}
	for i, r := range records {
		out.Leases[i] = lease(r)
	}
	return out, nil
}

func (c *Control) leasesReset(in asking, p protocol.LeasesResetParams) (any, error) {
	if p.Actor == "" || p.Slot < 0 {
		return nil, badParam("the slot is not named", "give actor, and slot from 1, or 0 for every slot")
	}
	slots := []fence.Slot{{Actor: p.Actor, Number: p.Slot}}
	if p.Slot == 0 {
		records, err := c.box.Leases().List(in.run)
		if err != nil {
			return nil, err
		}
		slots = slots[:0]
		for _, r := range records {
			if r.Slot.Actor == p.Actor {
				slots = append(slots, r.Slot)
			}
		}
	}
	out := protocol.LeasesReset{}
	for _, slot := range slots {
		existed, err := c.box.Leases().Reset(in.run, slot)
		if err != nil {
			return nil, err
		}
		if existed {
			out.Reset++
			c.box.Note(mailbox.Event{Kind: protocol.EventLeaseReset, Actor: slot.Actor, Slot: slot.Number, Text: "by an operator"})
		}
	}
	return out, nil
}

// noSupervisor refuses what only a running supervisor can do.
func noSupervisor(what string) error {
	return refusal.New(refusal.Unavailable, what, "no supervisor runs on this store", "start one with `sovereign run`")
}

func (c *Control) actorStart(in asking, p protocol.ActorParams) (any, error) {
	if c.supervisor != nil {
		return in.wish(protocol.MethodActorStart, p, c.supervisor.Start)
	}
	return protocol.Empty{}, c.box.SetStopped(in.run, p.Actor, false)
}

func (c *Control) actorStop(in asking, p protocol.ActorParams) (any, error) {
	if c.supervisor != nil {
		return in.wish(protocol.MethodActorStop, p, c.supervisor.Stop)
	}
	return protocol.Empty{}, c.box.SetStopped(in.run, p.Actor, true)
}

func (c *Control) actorPause(in asking, p protocol.ActorParams) (any, error) {
	if c.supervisor != nil {
		return protocol.Empty{}, c.supervisor.Pause(in.run, p.Actor)
	}
	return protocol.Empty{}, c.box.SetPaused(in.run, p.Actor, true)
}

func (c *Control) actorResume(in asking, p protocol.ActorParams) (any, error) {
	if c.supervisor != nil {
		return protocol.Empty{}, c.supervisor.Resume(in.run, p.Actor)
	}
	return protocol.Empty{}, c.box.SetPaused(in.run, p.Actor, false)
}

func (c *Control) actorRestart(in asking, p protocol.ActorParams) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("restart " + quoted(p.Actor))
	}
	return in.wish(protocol.MethodActorStart, p, c.supervisor.Restart) // once it is asked for, that it starts is waited for
}

func (c *Control) actorSignal(in asking, p protocol.ActorParams) (any, error) {
	if p.Signal == "" {
		return nil, badParam("no signal is given", "give a signal's name, as in HUP")
	}
	if c.supervisor == nil {
		return nil, noSupervisor("signal " + quoted(p.Actor))
	}
	return protocol.Empty{}, c.supervisor.Signal(in.run, p.Actor, p.Signal)
}

func (c *Control) reload(in asking, p protocol.ReloadParams) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("reload")
	}
	return c.supervisor.Reload(in.run, p.DryRun)
}

func (c *Control) upgrade(in asking, p protocol.UpgradeParams) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("upgrade")
	}
	done, err := in.waiting()
	if err != nil {
		return nil, err
	}
	defer done()
	id, err := c.supervisor.Upgrade(in.wait, p.Binary)
	if err != nil {
		return nil, err
	}
	return c.outcome(in, id)
}

func (c *Control) upgraded(in asking, p protocol.UpgradedParams) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("upgrade")
	}
	done, err := in.waiting()
	if err != nil {
		return nil, err
	}
	defer done()
	return c.outcome(in, p.ID)
}

// outcome waits until an upgrade is over, wherever the connection is by then.
func (c *Control) outcome(in asking, id string) (any, error) {
	out, err := c.supervisor.Upgraded(in.wait, id)
	if errors.Is(err, errPassedOn) {
		return nil, anew(protocol.MethodUpgraded, protocol.UpgradedParams{ID: id})
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Control) shutdown(asking, protocol.Empty) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("shut down")
	}
	c.supervisor.Shutdown()
	return protocol.Empty{}, nil
}

func (c *Control) reopenLogs(asking, protocol.Empty) (any, error) {
	if c.supervisor == nil {
		return nil, noSupervisor("reopen the logs")
	}
	c.supervisor.ReopenLogs()
	return protocol.Empty{}, nil
}

func (c *Control) eventsList(in asking, p protocol.EventsListParams) (any, error) {
	if p.Limit < 0 {
		return nil, badParam("limit is negative", "give 1 or more, or leave it out for 100")
	}
	limit := p.Limit
	if limit == 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	ctx := in.run
	if p.Wait <= 0 {
		if err := in.bulky(); err != nil {
			return nil, err
		}
	} else {
		done, err := in.waiting()
		if err != nil {
			return nil, err
		}
		defer done()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(in.wait, p.Wait.Std())
		defer cancel()
	}
	out := protocol.Events{Events: []protocol.Event{}, Next: p.After}
	for {
		found, more, err := c.box.Events(in.run, out.Next, limit)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			out.Next = e.Seq
			if p.Actor == "" || e.Actor == p.Actor {
				out.Events = append(out.Events, event(e))
			}
		}
		switch {
		case len(out.Events) > 0:
			return out, nil
		case len(found) > 0 && ctx.Err() == nil:
			continue // all of them are of other actors
		case p.Wait <= 0:
			return out, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			if passedOn(in.wait) {
				p.After = out.Next
				return nil, anew(protocol.MethodEventsList, p)
			}
			return out, nil
		}
	}
}
