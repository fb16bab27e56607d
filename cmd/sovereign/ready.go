package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sovereign-run/sovereign/config"
	"github.com/sovereign-run/sovereign/mailbox"
	"github.com/sovereign-run/sovereign/supervisor"
)

// lookAgain, for each actor, is waited between two looks at whether all are up.
const lookAgain = 50 * time.Microsecond

// tellService tells the service manager once that all actors are up, then waits
// for ctx to end, and returns its cause.
func tellService(ctx context.Context, service notifier, box *mailbox.Box, sup *supervisor.Supervisor, log *slog.Logger) error {
	select {
	case <-sup.Recovered():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		changed := sup.Changes()
		status := sup.Status()
		if allUp(status, blocked(sup.Declared(), box.Actors(), status)) {
			if err := service.tell(fmt.Sprintf("READY=1\nSTATUS=%s", plural(int64(len(status)), "actor"))); err != nil {
				log.Warn("service manager not told", "err", err)
			}
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
		// Many actors come up one after the other; looking at all of them for each
		// would cost more than starting them.
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(len(status)) * lookAgain):
		}
	}
	debug.FreeOSMemory() // what the start has left behind is not needed to sit idle
	<-ctx.Done()
	return context.Cause(ctx)
}

// allUp says whether every actor runs that is to run, or has shown that it
// cannot: one that fails does not keep the others from being used.
func allUp(running []supervisor.ActorStatus, blocked map[string]string) bool {
	return !slices.ContainsFunc(running, func(a supervisor.ActorStatus) bool {
		return blocked[a.Actor] == "" && slices.ContainsFunc(a.Slots, func(s supervisor.SlotStatus) bool { return onItsWay(a.Mode, s.State) })
	})
}

// onItsWay says whether a slot in this state has not been up yet. A task's slot
// is up when it takes messages.
func onItsWay(mode config.Mode, state string) bool {
	switch state {
	case "stopped", "waiting":
		return true
	case "idle", "withdrawing", "spawning", "starting":
		return mode != config.Task
	default:
		return false
	}
}
